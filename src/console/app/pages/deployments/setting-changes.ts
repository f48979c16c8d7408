/** Events of the audit log as changes of a deployment that people read. */
import type { AuditEventJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { SETTING_FIELDS } from "./setting-fields.ts";

interface SettingChange {
  readonly what: string;
  /** The value after it; undefined where it has none to show. */
  readonly is?: string;
  /** The value before it, where an earlier event tells it. */
  readonly was?: string;
}

const WORDS: Readonly<Record<string, string>> = {
  "deployment.create": "Created",
  "deployment.deploy": "Deployed revision",
  "deployment.roll_back": "Rolled back to revision",
  "deployment.start": "Started",
  "deployment.stop": "Stopped",
  "deployment.confirm_secrets": "Confirmed the secrets",
};

const LABELS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(SETTING_FIELDS.map(({ path, label }) => [path, label])),
  secrets: "Set secrets",
  removed_secrets: "Deleted secrets",
};

/** Details that are names, without values: what they were before says little. */
const NAMES: ReadonlySet<string> = new Set(["env", "requires", "secrets", "removed_secrets"]);

const CALLERS: Readonly<Record<string, string>> = { true: "Protected", false: "Public" };

/** The changes that an event tells of; `before` are the events before it, newest first. */
export function changesOf(
  { action = "", details = {} }: AuditEventJson,
  before: readonly AuditEventJson[],
): readonly SettingChange[] {
  const earlier = (field: string): string | undefined =>
    before.find((event) => event.details?.[field] !== undefined)?.details?.[field];
  const word = WORDS[action];
  const revision = details[action === "deployment.roll_back" ? "to" : "revision"];
  const head = word === undefined ? [] : [{ what: word, ...(revision && { is: revision }) }];
  const changes = Object.entries(details).flatMap(([field, is]): SettingChange[] => {
    if (field === "authorization") {
      const was = earlier(field);
      // An update tells it also where it stays.
      return was === is && word === undefined
        ? []
        : [{ what: "Callers:", is: CALLERS[is] ?? is, ...(was && { was: CALLERS[was] ?? was }) }];
    }
    const what = LABELS[field];
    if (what === undefined || action === "deployment.confirm_secrets") {
      return [];
    }
    if (NAMES.has(field)) {
      return [{ what, is: is.replaceAll(" ", ", ") || "none" }];
    }
    const was = earlier(field);
    const unit = SETTING_FIELDS.find(({ path }) => path === field)?.unit;
    const withUnit = (value: string): string => (unit === undefined ? value : `${value} ${unit}`);
    const hasChanged = was !== undefined && was !== is;
    return [{ what: `${what}:`, is: withUnit(is), ...(hasChanged && { was: withUnit(was) }) }];
  });
  const all = [...head, ...changes];
  return all.length > 0 ? all : [{ what: action.replace(/^deployment\./, "") }];
}
