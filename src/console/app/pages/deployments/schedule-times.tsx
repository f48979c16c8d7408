/** The next times of a schedule, by the clock of its zone. */
import { Time } from "../../ui/time.tsx";
import "./schedules.css";

export function ScheduleTimes({
  times,
  zone,
}: {
  readonly times: readonly string[];
  readonly zone: string;
}) {
  const clock = clockOf(zone, WRITTEN);
  return (
    <ol className="schedule-times">
      {times.map((time) => (
        <li key={time}>
          <span>{clock.format(new Date(time))}</span>
          <span className="secondary">
            <Time at={time} />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** A time by the clock of a zone, with the zone's short name, such as `Nov 30, 08:00 GMT+1`. */
export function clockText(time: string, zone: string): string {
  return clockOf(zone, SHORT).format(new Date(time));
}

const SHORT: Intl.DateTimeFormatOptions = {
  ...{ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
  ...{ hourCycle: "h23", timeZoneName: "short" },
};

const WRITTEN: Intl.DateTimeFormatOptions = {
  ...{ weekday: "short", year: "numeric", month: "short", day: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
};

/** The clock of a zone; that of the browser, with its name, where it does not know the zone. */
function clockOf(zone: string, written: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat(undefined, { ...written, timeZone: zone });
  } catch {
    return new Intl.DateTimeFormat(undefined, { ...written, timeZoneName: "short" });
  }
}
