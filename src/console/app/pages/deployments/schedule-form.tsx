/** The dialog in which a schedule is written, with the times at which it would call. */
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { ScheduleJson } from "../../../../../gen/tessera/v1/schedule_pb.js";
import { CallError, capitalized } from "../../api/errors.ts";
import { schedules, timesOf } from "../../api/schedules.ts";
import { useOrganization } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { formMessage, violationOf } from "../../ui/form.ts";
import { FormActions } from "../../ui/form-actions.tsx";
import { Notice } from "../../ui/notice.tsx";
import { useSeenVersion } from "../../ui/use-seen-version.ts";
import { wordsOfCron } from "./cron-words.ts";
import { useDeploymentName } from "./frame.tsx";
import { ScheduleTimes } from "./schedule-times.tsx";
import "./schedules.css";

/** What may be changed of a schedule, as it is written. */
interface Draft {
  readonly endpoint: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly arguments: string;
  readonly overlap: NonNullable<ScheduleJson["overlap"]>;
  readonly catchUp: NonNullable<ScheduleJson["catchUp"]>;
}

/** What happens at a time at which an earlier task is still under way, in words. */
export const OVERLAPS = [
  ["SCHEDULE_OVERLAP_SKIP", "Pass over the time"],
  ["SCHEDULE_OVERLAP_QUEUE", "Queue a task beside it"],
  ["SCHEDULE_OVERLAP_REPLACE", "Cancel it and queue a task"],
] as const satisfies readonly (readonly [Draft["overlap"], string])[];
/** What becomes of missed times, in words. */
export const CATCH_UPS = [
  ["SCHEDULE_CATCH_UP_NONE", "Nothing"],
  ["SCHEDULE_CATCH_UP_ONE", "One task for all of them"],
  ["SCHEDULE_CATCH_UP_ALL", "A task for each, of seven days"],
] as const satisfies readonly (readonly [Draft["catchUp"], string])[];

const FIELDS = ["name", "endpoint", "cron", "time_zone", "arguments"].map(
  (field) => `schedule.${field}`,
);
const NOT_AN_OBJECT = 'The arguments must be an object of JSON, such as {"region": "north"}.';

const draftOf = (schedule: ScheduleJson | undefined, endpoints: readonly string[]): Draft => ({
  endpoint: schedule?.endpoint ?? endpoints[0] ?? "",
  cron: schedule?.cron ?? "",
  timeZone: schedule?.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  arguments: JSON.stringify(schedule?.arguments ?? {}, undefined, 2),
  overlap: schedule?.overlap ?? "SCHEDULE_OVERLAP_SKIP",
  catchUp: schedule?.catchUp ?? "SCHEDULE_CATCH_UP_ONE",
});

interface ScheduleFormProps {
  /** Undefined: one is created. */
  readonly schedule: ScheduleJson | undefined;
  /** The task endpoints of the deployment. */
  readonly endpoints: readonly string[];
  onDone(said: string): void;
  onClose(): void;
}

export function ScheduleForm({ schedule, endpoints, onDone, onClose }: ScheduleFormProps) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const form = useRef<HTMLFormElement>(null);
  const [name, setName] = useState(schedule?.name ?? "");
  const [before] = useState(() => draftOf(schedule, endpoints));
  const [draft, setDraft] = useState(before);
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const changed = (Object.keys(draft) as (keyof Draft)[]).filter(
    (field) => draft[field] !== before[field],
  );
  const given = objectOf(draft.arguments);
  const sendSeen = useSeenVersion<ScheduleJson>({
    thing: schedule,
    read: () => schedules.getSchedule({ organization, deployment, schedule: name }),
    wordsOf: ({ cron = "", timeZone, endpoint, paused }) =>
      `${wordsOfCron(cron) ?? cron}, ${timeZone}, of ${endpoint}${paused ? ", paused" : ""}`,
  });
  const { error, ...saving } = useMutation({
    mutationFn: async () => {
      if (given === undefined) {
        const violations = [{ field: "schedule.arguments", description: NOT_AN_OBJECT }];
        throw new CallError(NOT_AN_OBJECT, { violations });
      }
      const asked = {
        ...{ organization, deployment },
        schedule: { ...draft, name, arguments: given },
      };
      return schedule === undefined
        ? schedules.createSchedule(asked)
        : sendSeen((version) =>
            schedules.updateSchedule({
              ...asked,
              schedule: { ...asked.schedule, version },
              updateMask: changed.join(","),
            }),
          );
    },
    onSuccess: () => onDone(`${name} is ${schedule === undefined ? "created" : "changed"}`),
  });
  useEffect(() => {
    if (error !== null) {
      form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
    }
  }, [error]);
  const misfit = misfitOf(error);
  const message = misfit === undefined ? formMessage(error, ...FIELDS) : undefined;
  return (
    <Dialog title={schedule === undefined ? "Create schedule" : `Edit ${name}`} onClose={onClose}>
      <form
        ref={form}
        onInput={() => saving.reset()}
        onSubmit={(event) => {
          event.preventDefault();
          if (!saving.isPending) {
            saving.mutate();
          }
        }}
      >
        {schedule?.declared && (
          <Notice kind="warning">
            It is from tessera.yaml: the next deploy makes it as the file says.
          </Notice>
        )}
        <div className="field-row">
          {schedule === undefined && (
            <Field label="Name" error={violationOf(error, "schedule.name")}>
              {(control) => (
                <input
                  {...control}
                  {...WORD}
                  maxLength={63}
                  value={name}
                  onChange={({ target }) => setName(target.value)}
                />
              )}
            </Field>
          )}
          <Field label="Endpoint" error={violationOf(error, "schedule.endpoint")}>
            {(control) => (
              <select
                {...control}
                value={draft.endpoint}
                onChange={({ target }) => change({ endpoint: target.value })}
              >
                {[...new Set([before.endpoint, ...endpoints])].map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <div className="field-row">
          <Field label="Cron expression" error={violationOf(error, "schedule.cron")}>
            {(control) => (
              <input
                {...control}
                {...WORD}
                className="code"
                maxLength={100}
                placeholder="0 3 * * MON-FRI"
                value={draft.cron}
                onChange={({ target }) => change({ cron: target.value })}
              />
            )}
          </Field>
          <Field label="Time zone" error={violationOf(error, "schedule.time_zone")}>
            {(control) => (
              <>
                <input
                  {...control}
                  {...WORD}
                  maxLength={64}
                  list={`${control.id}-list`}
                  value={draft.timeZone}
                  onChange={({ target }) => change({ timeZone: target.value })}
                />
                <datalist id={`${control.id}-list`}>
                  {["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => (
                    <option key={zone} value={zone} />
                  ))}
                </datalist>
              </>
            )}
          </Field>
        </div>
        <Preview draft={draft} given={given} />
        <Field
          label="Arguments"
          hint="An object of JSON, the same for each call."
          error={misfit ?? violationOf(error, "schedule.arguments")}
        >
          {(control) => (
            <textarea
              {...control}
              className="code"
              required
              rows={3}
              spellCheck={false}
              value={draft.arguments}
              onChange={({ target }) => change({ arguments: target.value })}
            />
          )}
        </Field>
        <div className="field-row">
          <Choice
            label="While an earlier task is under way"
            choices={OVERLAPS}
            value={draft.overlap}
            onChange={(overlap) => change({ overlap })}
          />
          <Choice
            label="To make up for missed times"
            choices={CATCH_UPS}
            value={draft.catchUp}
            onChange={(catchUp) => change({ catchUp })}
          />
        </div>
        {message && <Notice kind="error">{message}</Notice>}
        <FormActions
          action={schedule === undefined ? "Create" : "Save"}
          disabled={schedule !== undefined && changed.length === 0}
          isBusy={saving.isPending}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

const WORD = {
  required: true,
  autoComplete: "off",
  autoCapitalize: "none",
  spellCheck: false,
} as const;

/** When it would call, or what is wrong with it so far. */
function Preview({ draft, given }: { readonly draft: Draft; readonly given: object | undefined }) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const { endpoint, cron, timeZone } = draft;
  const hasFields = cron.trim().split(/\s+/).length === 5;
  const words = wordsOfCron(cron);
  const schedule = { endpoint, cron, timeZone, arguments: given as ScheduleJson["arguments"] };
  const { data: times, error } = useQuery({
    ...timesOf(organization, deployment, schedule as ScheduleJson),
    enabled: hasFields && given !== undefined,
    placeholderData: keepPreviousData,
  });
  const fault = hasFields
    ? given === undefined
      ? NOT_AN_OBJECT
      : (misfitOf(error) ?? violationOf(error, ...FIELDS) ?? error?.message)
    : "A cron expression has five fields: minute, hour, day of the month, month and day of the week.";
  return (
    <section className="schedule-preview" aria-labelledby="next-times">
      <h3 id="next-times">Next times</h3>
      <div role="status">
        {words && (
          <p>
            {words}, {timeZone}
          </p>
        )}
        {fault === undefined ? (
          times && <ScheduleTimes times={times} zone={timeZone} />
        ) : (
          <p className="hint">{fault}</p>
        )}
      </div>
    </section>
  );
}

function Choice<Value extends string>({
  label,
  choices,
  value,
  onChange,
}: {
  readonly label: string;
  readonly choices: readonly (readonly [Value, string])[];
  readonly value: Value;
  onChange(value: Value): void;
}) {
  return (
    <Field label={label}>
      {(control) => (
        <select
          {...control}
          value={value}
          onChange={({ target }) => onChange(target.value as Value)}
        >
          {choices.map(([one, words]) => (
            <option key={one} value={one}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Why the arguments do not fit their endpoint, if that is the error. */
const misfitOf = (err: unknown): string | undefined =>
  err instanceof CallError && err.reason === "ARGUMENTS_INVALID"
    ? capitalized(err.message)
    : undefined;

/** The object that a text of JSON is; undefined for any other text. */
function objectOf(text: string): NonNullable<ScheduleJson["arguments"]> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as NonNullable<ScheduleJson["arguments"]>)
      : undefined;
  } catch {
    return undefined;
  }
}
