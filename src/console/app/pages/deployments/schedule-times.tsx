/** The next times of a schedule, by the clock of its zone. */
import { DueTime } from "../../ui/time.tsx";
import "./schedules.css";

export function ScheduleTimes({
  times,
  zone,
}: {
  readonly times: readonly string[];
  readonly zone: string;
}) {
  const clock = longClockOf(zone);
  return (
    <ol className="schedule-times" aria-label="Next times">
      {times.map((time) => (
        <li key={time}>
          <span>{clock.format(new Date(time))}</span>
          <span className="secondary">
            <DueTime at={time} />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** A time by the clock of a zone, such as `Nov 30, 08:00`. */
export function clockText(time: string, zone: string): string {
  return shortClockOf(zone).format(new Date(time));
}

/** Formats of time zones, each made once. Of a zone that the browser does not know: its own, with its name. */
function clocksThatWrite(written: Intl.DateTimeFormatOptions) {
  const made = new Map<string, Intl.DateTimeFormat>();
  return (zone: string): Intl.DateTimeFormat => {
    const clock = made.get(zone) ?? clockOf(zone, written);
    made.set(zone, clock);
    return clock;
  };
}

function clockOf(zone: string, written: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat(undefined, { ...written, timeZone: zone });
  } catch {
    return new Intl.DateTimeFormat(undefined, { ...written, timeZoneName: "short" });
  }
}

const shortClockOf = clocksThatWrite({
  ...{ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
  hourCycle: "h23",
});

const longClockOf = clocksThatWrite({
  ...{ weekday: "short", year: "numeric", month: "short", day: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
});
