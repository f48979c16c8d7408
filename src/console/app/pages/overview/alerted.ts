/** One row for one thing that needs attention, where an alert fires, or is pending, for what is seen anyway. */
import type { AlertJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import { alertSubjectOf } from "../../api/alert-subject.ts";

/** What an alert may be about. */
interface Alertable {
  /** The keys of everything that its row is about. */
  readonly keys: readonly string[];
  readonly isBad: boolean;
  readonly cause: string;
}

/** The concerns that alerts are about which fire, by the kind of alert. */
const ABOUT: Readonly<Record<string, string>> = {
  ALERT_KIND_FAILURES: "tasks",
  ALERT_KIND_DEPLOYMENT_DEGRADED: "deployment",
  ALERT_KIND_OLDEST_TASK_WAITS: "waiting",
  ALERT_KIND_WEBHOOK_OFF: "webhook",
};

/**
 * Says of a concern that an alert fires, or is pending, for it, which then has no row of its own;
 * `left` are the others.
 */
export function withAlerts<Seen extends Alertable>(
  seen: readonly Seen[],
  alerts: readonly AlertJson[],
): { readonly fired: readonly Seen[]; readonly left: readonly AlertJson[] } {
  const byKey = Map.groupBy(alerts, keyOf);
  const keys = new Set(seen.flatMap((one) => one.keys));
  const fired = seen.map((one) => {
    const about = one.keys.flatMap((key) => byKey.get(key) ?? []);
    const isFiring = about.some(isFired);
    const rules = [...new Set(about.filter((alert) => isFired(alert) === isFiring).map(ruleOf))];
    const words = rules.length > 1 ? "alerts" : "alert";
    const named = `${words} ${rules.join(", ")}${isFiring ? "" : ", pending"}`;
    return rules.length === 0
      ? one
      : { ...one, isBad: one.isBad || isFiring, cause: `${one.cause} (${named})`.trimStart() };
  });
  return { fired, left: alerts.filter((alert) => !keys.has(keyOf(alert))) };
}

const isFired = ({ firedAt }: AlertJson): boolean => firedAt !== undefined;

const ruleOf = ({ rule }: AlertJson): string | undefined => rule;

/** The key of the concern that an alert is about. */
function keyOf({ kind, subject = "" }: AlertJson): string {
  const { name, of } = alertSubjectOf(subject);
  return `${ABOUT[kind ?? ""]} ${of === "" ? name : `${of}/${name}`}`;
}
