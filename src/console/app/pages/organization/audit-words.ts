/** Events of the audit log in sentences. */
import type { AuditEventJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { type RunOf, runsOf } from "../../api/runs.ts";
import { deedsOf } from "../../api/token-access.ts";
import { duration } from "../../ui/duration.ts";
import { dateText } from "../../ui/time-range.ts";

/** What happened, by its action: `{}` is the subject, and a name in braces is a detail. */
export const SENTENCES: Readonly<Record<string, string>> = {
  "deployment.create": "Created the deployment {}",
  "deployment.deploy": "Deployed {}, revision {revision}",
  "deployment.roll_back": "Rolled {} back to revision {to}",
  "deployment.update": "Changed the settings of {}",
  "deployment.update_secrets": "Changed the secrets of {}",
  "deployment.confirm_secrets": "Confirmed the secrets of {}",
  "deployment.start": "Started {}",
  "deployment.stop": "Stopped {}",
  "deployment.pause_endpoint": "Paused the endpoint {endpoint} of {}",
  "deployment.resume_endpoint": "Resumed the endpoint {endpoint} of {}",
  "deployment.delete": "Deleted the deployment {}",
  "worker.secrets": "Gave secrets of {} to a worker",
  "machine.drain": "Drained the machine {}",
  "machine.resume": "Took the machine {} back",
  "node.drain": "Drained the nodes on {}",
  "node.resume": "Took the nodes on {} back",
  "token.create": "Created the token {}",
  "token.update": "Changed the token {}",
  "token.rotate": "Rotated the token {}",
  "token.reveal": "Viewed the value of the token {}",
  "token.delete": "Deleted the token {}",
  "model.push": "Pushed the model {}, version {version}",
  "model.import": "Imported the model {}, version {version}",
  "model.delete": "Deleted the model {}, version {version}",
  "member.join": "Joined as {role}",
  "member.update": "Changed the role of {} to {role}",
  "member.remove": "Removed the member {}",
  "member.leave": "Left the organization",
  "invitation.create": "Invited {} as {role}",
  "invitation.delete": "Withdrew the invitation of {}",
  "organization.create": "Created the organization {}",
  "organization.update": "Changed the organization {}",
  "organization.ask_for_monitoring": "Asked for monitoring tokens",
  "schedule.create": "Created the schedule {}",
  "schedule.update": "Changed the schedule {}",
  "schedule.run": "Ran the schedule {} by hand",
  "schedule.delete": "Deleted the schedule {}",
  "task.update": "Changed a task of {}",
  "task.delete": "Deleted a task of {}",
  "task.delete_all": "Deleted {tasks} tasks",
  "webhook.create": "Created the webhook {}",
  "webhook.update": "Changed the webhook {}",
  "webhook.rotate": "Rotated the secret of the webhook {}",
  "webhook.test": "Tested the webhook {}",
  "webhook.redeliver": "Sent a delivery of the webhook {} again",
  "webhook.delete": "Deleted the webhook {}",
  "alert_rule.create": "Created the alert rule {}",
  "alert_rule.update": "Changed the alert rule {}",
  "alert_rule.silence": "Silenced the alert rule {}",
  "alert_rule.delete": "Deleted the alert rule {}",
  "alert_receiver.create": "Created the receiver of alerts {}",
  "alert_receiver.update": "Changed the receiver of alerts {}",
  "alert_receiver.rotate": "Rotated the secret of the receiver of alerts {}",
  "alert_receiver.test": "Tested the receiver of alerts {}",
  "alert_receiver.redeliver": "Sent a message to the receiver of alerts {} again",
  "alert_receiver.delete": "Deleted the receiver of alerts {}",
  "budget.create": "Created the budget {}",
  "budget.update": "Changed the budget {}",
  "budget.delete": "Deleted the budget {}",
  sign_in: "Signed in",
  "sign_in.failed": "Failed to sign in as {}",
  sign_out: "Signed out",
  "session.end": "Ended a session of {}",
  "login.authorize": "Logged in the command line on {host_name}",
  "login.approve": "Connected the device {host_name}",
  "login.deny": "Refused the device {host_name}",
  "password.change": "Changed the password of {}",
  "email.verify": "Verified the address {}",
  "identity.link": "Linked an identity to {}",
  "display_name.change": "Changed the name of {}",
  "operator.grant": "Made {} an operator",
  "operator.revoke": "Ended {} being an operator",
  "keys.rotate": "Rotated the platform's keys",
};

/** The kinds of actions that the log is filtered by: the first words of their names. */
export const ACTION_KINDS: Readonly<Record<string, string>> = {
  deployment: "Deployments",
  token: "API tokens",
  model: "Models",
  member: "Members",
  invitation: "Invitations",
  organization: "Organization",
  sign_in: "Sign-ins",
  "sign_in.failed": "Failed sign-ins",
  session: "Sessions",
  login: "Logins of programs",
  password: "Passwords",
  schedule: "Schedules",
  task: "Tasks",
  webhook: "Webhooks",
  alert_rule: "Alert rules",
  alert_receiver: "Receivers of alerts",
  budget: "Budgets",
  worker: "Workers",
  machine: "Machines",
  node: "Nodes",
  operator: "Operators",
};

/** Characters of a detail behind a sentence; the opened event has all. */
const MAX_SHORT_CHARACTERS = 40;

/** Characters of a digest that say which it is. */
const DIGEST_CHARACTERS = 8;

interface AuditWords {
  /** The sentence up to its subject, the subject, and the rest. */
  readonly before: string;
  readonly subject: string;
  readonly after: string;
  /** What the sentence leaves out, such as `digest 37d07596`. */
  readonly more: readonly string[];
}

/** An event in words; one of an action that is not known by the name of the action. */
export function wordsOf({ action = "", subject = "", details = {} }: AuditEventJson): AuditWords {
  const sentence = SENTENCES[action] ?? `${action} {}`;
  const condition = CONDITIONS[details.kind ?? ""] ?? "";
  const told = new Set(
    [...`${sentence}${condition}`.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name),
  );
  const filled = (text: string): string =>
    text.replace(/\{(\w+)\}/g, (_, name: string) => details[name] || "unknown");
  const [before = "", after] = sentence.split("{}");
  return {
    before: filled(before),
    subject: after === undefined ? "" : subject,
    after: filled(after ?? ""),
    more: Object.entries(details).flatMap(([name, value]) => {
      if (told.has(name) || value === "" || value === subject || /^by_token$|_ids?$/.test(name)) {
        return [];
      }
      if (name === "kind" && condition !== "") {
        return [filled(condition)];
      }
      return name === "threshold" && condition !== "" ? [] : [phraseOf(name, value)];
    }),
  };
}

/** What rules of alerts look for, by their kinds. */
const CONDITIONS: Readonly<Record<string, string>> = {
  oldest_task_waits: "when a task waits for {threshold} s",
  failures: "when more than {threshold} % of tasks fail",
  deployment_degraded: "when a deployment is degraded or has failed",
  worker_restarts: "when workers restart more than {threshold} times",
  token_ends: "when a token ends within {threshold} days",
  webhook_off: "when a webhook or a receiver is disabled or failing",
  budget_used: "when {threshold} % of a budget is used",
  disk_free: "when less than {threshold} % of a disk is free",
};

/** Names and values that are words of this API alone. */
const WORDS: Readonly<Record<string, string>> = {
  "authorization true": "protected",
  "authorization false": "public",
  "setup true": "at the setup",
  "kind personal": "personal",
  "kind organization": "of the organization",
};

/** Access of a token in the words of its page; events have it as `developer_operations`. */
const accessText = (value: string): string =>
  deedsOf(value.split(" ").map((one) => `TOKEN_ACCESS_${one.toUpperCase()}`));

const listed = (value: string, word: string): string => value.split(" ").join(word);

/** Details with a sense of their own, by their names. */
const PHRASES: Readonly<Record<string, (value: string) => string>> = {
  access: accessText,
  address: (value) => `at ${value}`,
  digest: (value) => `digest ${value.slice(0, DIGEST_CHARACTERS)}`,
  events: (value) => `on ${listed(value.replaceAll("task.", ""), ", ")}`,
  receivers: (value) => `notifies ${listed(value, " and ")}`,
  hold_seconds: (value) => `after ${duration(Number(value) * 1_000)}`,
};

function phraseOf(name: string, value: string): string {
  const phrase = WORDS[`${name} ${value}`] ?? PHRASES[name]?.(value);
  if (phrase !== undefined) {
    return phrase;
  }
  const words = name.replaceAll("_", " ");
  if (/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(value)) {
    return `${words.replace(/ at$/, "")} ${dateText(value)}`;
  }
  const [, measured, unit] = /^(.+) (mib|seconds)$/.exec(words) ?? [];
  if (measured !== undefined) {
    return `${measured} ${unit === "mib" ? `${value} MiB` : duration(Number(value) * 1_000)}`;
  }
  return value.length > MAX_SHORT_CHARACTERS
    ? `${words} ${value.slice(0, MAX_SHORT_CHARACTERS)}…`
    : `${words} ${value.replaceAll("_", " ")}`;
}

/** Events that say the same of the same, one after another, as one: each is a list, newest first. */
export const foldedEvents = (events: readonly AuditEventJson[]): readonly RunOf<AuditEventJson>[] =>
  runsOf(events, (event, before) => sameText(event) === sameText(before));

const sameText = ({ action, actor, address, subject, details }: AuditEventJson): string =>
  JSON.stringify([action, actor, address, subject, details]);
