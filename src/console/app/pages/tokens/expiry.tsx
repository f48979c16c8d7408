/** When a token ends: after a number of days, or at the end of a day of one's own. */
import { useState } from "react";
import { Field } from "../../ui/field.tsx";

const DAYS = [7, 30, 90, 365] as const;
export const DEFAULT_DAYS = 90;
const DAY_MS = 86_400_000;

export const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

interface ExpiryProps {
  /** RFC 3339. */
  readonly value: string;
  readonly error: string | undefined;
  onChange(value: string): void;
}

export function Expiry({ value, error, onChange }: ExpiryProps) {
  const [choice, setChoice] = useState(String(DEFAULT_DAYS));
  return (
    <div className="field-row">
      <Field label="Expires" error={choice === "date" ? undefined : error}>
        {(control) => (
          <select
            {...control}
            value={choice}
            onChange={(event) => {
              setChoice(event.target.value);
              if (event.target.value !== "date") {
                onChange(inDays(Number(event.target.value)));
              }
            }}
          >
            {DAYS.map((days) => (
              <option key={days} value={days}>
                in {days} days
              </option>
            ))}
            <option value="date">at the end of a day</option>
          </select>
        )}
      </Field>
      {choice === "date" && (
        <Field label="Day" error={error}>
          {(control) => (
            <input
              {...control}
              type="date"
              required
              min={dayOf(Date.now())}
              defaultValue={dayOf(Date.parse(value))}
              onChange={(event) => {
                const end = new Date(`${event.target.value}T23:59:59`);
                if (!Number.isNaN(end.getTime())) {
                  onChange(end.toISOString());
                }
              }}
            />
          )}
        </Field>
      )}
    </div>
  );
}

/** The day of this browser, `YYYY-MM-DD`. */
function dayOf(ms: number): string {
  const date = new Date(ms);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
