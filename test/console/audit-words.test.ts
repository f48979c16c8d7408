import { expect, it } from "vitest";
import {
  ACTION_KINDS,
  foldedEvents,
  SENTENCES,
  wordsOf,
} from "../../src/console/app/pages/organization/audit-words.ts";
import { AUDIT_ACTIONS } from "../../src/storage/accounts/audit.ts";

const sentence = (event: Parameters<typeof wordsOf>[0]): string => {
  const { before, subject, after } = wordsOf(event);
  return `${before}${subject}${after}`;
};

it("every action of the audit log is told in a sentence", () => {
  expect(Object.keys(SENTENCES).toSorted()).toEqual(AUDIT_ACTIONS.toSorted());
});

it("every kind of action that the log is filtered by is of some action", () => {
  const isOfSome = (kind: string) =>
    AUDIT_ACTIONS.some((action) => action === kind || action.startsWith(`${kind}.`));
  expect(Object.keys(ACTION_KINDS).filter((kind) => !isOfSome(kind))).toEqual([]);
});

it("a deploy is told with its revision, and the rest of it in short", () => {
  const details = {
    revision: "3",
    digest: "37d07596aaaa",
    authorization: "true",
    memory_mib: "512",
    by_token: "ci",
    by_token_id: "0192",
  };
  const event = { action: "deployment.deploy", subject: "forecast", details };
  expect(sentence(event)).toBe("Deployed forecast, revision 3");
  // By which token is told beside the person.
  expect(wordsOf(event).more).toEqual(["digest 37d07596", "protected", "memory 512 MiB"]);
});

it("the access of a token is told in the words of its page", () => {
  const more = (access: string) =>
    wordsOf({ action: "token.create", subject: "ci", details: { access } }).more;
  expect(more("developer_operations")).toEqual(["Deploy and manage"]);
  expect(more("protected_endpoint monitoring")).toEqual([
    "Call protected deployments, Read metrics",
  ]);
});

it("the kind of a token and its end are told in plain words", () => {
  const details = { kind: "personal", expires_at: "2027-02-27T12:00:00.000Z" };
  expect(wordsOf({ action: "token.create", subject: "ci", details }).more).toEqual([
    "personal",
    "expires Feb 27, 2027",
  ]);
});

it("what a rule looks for is told in words", () => {
  const more = (details: Record<string, string>) =>
    wordsOf({ action: "alert_rule.create", subject: "x", details }).more;
  const told = { hold_seconds: "60", receivers: "on-call mail", by_token: "ci" };
  expect(more({ kind: "token_ends", threshold: "100", ...told })).toEqual([
    "when a token ends within 100 days",
    "after 1 min",
    "notifies on-call and mail",
  ]);
  expect(more({ kind: "webhook_off", threshold: "0" })).toEqual([
    "when a webhook or a receiver is disabled or failing",
  ]);
  expect(more({ kind: "of_later", threshold: "3" })).toEqual(["kind of later", "threshold 3"]);
});

it("events that say the same one after another are one, and those between others are not", () => {
  const event = (eventId: string, action: string, actor = "ada") => ({ eventId, action, actor });
  const folded = foldedEvents([
    event("5", "sign_in"),
    event("4", "sign_in"),
    event("3", "sign_in", "bob"),
    event("2", "sign_out"),
    event("1", "sign_in"),
  ]);
  expect(folded.map((alike) => alike.map(({ eventId }) => eventId).join(" "))).toEqual([
    "5 4",
    "3",
    "2",
    "1",
  ]);
});

it("an action that is not known is told by its name", () => {
  expect(sentence({ action: "door.open", subject: "x" })).toBe("door.open x");
});
