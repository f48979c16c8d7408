import { expect, it } from "vitest";
import {
  ACTION_KINDS,
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
  expect(wordsOf(event).more).toEqual([
    "digest 37d07596",
    "protected",
    "memory mib 512",
    "token ci",
  ]);
});

it("an action that is not known is told by its name", () => {
  expect(sentence({ action: "door.open", subject: "x" })).toBe("door.open x");
});
