import { expect, it } from "vitest";
import { derivedKey } from "../../src/auth/keys.ts";
import type { Principal } from "../../src/auth/principal.ts";
import { sharedTaskAccess, TASK_ACCESS_PATTERN, TaskAccess } from "../../src/auth/task-access.ts";
import { toProblem } from "../../src/errors.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { session, token } from "./principals.ts";

const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2026, 0, 31, 12);
const newId = createIdSource();
const ids = { tokenId: newId(), organizationId: newId(), sessionId: newId() };
const TOKEN: Principal = { ...token("personal", "endpoint"), ...ids };
const SESSION: Principal = { ...session("member"), sessionId: ids.sessionId };
const deployment = { deploymentId: newId(), authorization: true };
const taskId = newId();
const secrets = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const;

function signer(of: readonly Uint8Array[] = [secrets[0]], clock = { nowMs: START_MS }) {
  return new TaskAccess({
    keys: (purpose) => of.map((secret) => derivedKey(secret, purpose)),
    recall: () => TOKEN,
    now: () => clock.nowMs,
  });
}

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (err) {
    const { reason, message } = toProblem(err);
    return `${reason}: ${message}`;
  }
  return "none";
}

it("says what it opens, for whom and until when, to every node that has the key", () => {
  const { access, expiresAtMs } = signer().make({ principal: TOKEN, taskId, deployment });
  expect(access).toMatch(TASK_ACCESS_PATTERN);
  expect(expiresAtMs).toBe(START_MS + 15 * MINUTE_MS);
  const { organizationId, tokenId } = ids;
  expect(signer().open(access)).toEqual({
    maker: { kind: "token", organizationId, id: tokenId },
    deploymentId: deployment.deploymentId,
    taskId,
    expiresAtMs,
  });
});

it("knows who made it: a token, a session, the shared token, or nobody where none is needed", () => {
  const makerOf = (principal: Principal, authorization = true) => {
    const of = { principal, taskId, deployment: { ...deployment, authorization } };
    return signer().open(signer().make(of).access).maker;
  };
  expect(makerOf(SESSION)).toEqual({ kind: "session", organizationId: "", id: ids.sessionId });
  expect(makerOf({ kind: "shared" })).toEqual({ kind: "shared", organizationId: "", id: "" });
  const nobody = { kind: "anonymous", organizationId: "", id: "" };
  expect(makerOf({ kind: "anonymous" }, false)).toEqual(nobody);
  expect(makerOf(TOKEN, false)).toEqual(nobody);
});

it("is refused from the moment at which its time is over", () => {
  const clock = { nowMs: START_MS };
  const { access, expiresAtMs } = signer([secrets[0]], clock).make({
    principal: TOKEN,
    taskId,
    deployment,
  });
  clock.nowMs = expiresAtMs - 1;
  expect(signer([secrets[0]], clock).open(access).taskId).toBe(taskId);
  clock.nowMs = expiresAtMs;
  expect(refusal(() => signer([secrets[0]], clock).open(access))).toMatch(
    /^TOKEN_INVALID: .*expired/,
  );
});

it("ends no later than the credential that it was made with", () => {
  const principal = { ...TOKEN, expiresAtMs: START_MS + MINUTE_MS } as Principal;
  const { expiresAtMs } = signer().make({ principal, taskId, deployment });
  expect(expiresAtMs).toBe(START_MS + MINUTE_MS);
});

it("is refused with any character changed, cut, added or written otherwise", () => {
  const { access } = signer().make({ principal: TOKEN, taskId, deployment });
  for (let at = 0; at < access.length; at += 1) {
    const other = access[at] === "A" ? "B" : "A";
    const altered = access.slice(0, at) + other + access.slice(at + 1);
    expect(
      refusal(() => signer().open(altered)),
      altered,
    ).toMatch(/^TOKEN_INVALID: .*altered/);
  }
  for (const other of [
    "",
    "tsra_",
    access.slice(0, -1),
    `${access}A`,
    `${access}=`,
    ` ${access}`,
  ]) {
    expect(
      refusal(() => signer().open(other)),
      other,
    ).toMatch(/^TOKEN_INVALID/);
  }
});

it("is read with an older key after another one has come, and by no other secret", () => {
  const { access } = signer([secrets[0]]).make({ principal: TOKEN, taskId, deployment });
  expect(signer([secrets[1], secrets[0]]).open(access).taskId).toBe(taskId);
  expect(refusal(() => signer([secrets[1]]).open(access))).toMatch(/^TOKEN_INVALID/);
});

it("is made of the shared token by every process that serves with it, and by no other", () => {
  const make = { principal: { kind: "shared" } as const, taskId, deployment };
  const none = { ...make, deployment: { deploymentId: "", authorization: true } };
  const now = () => START_MS;
  const { access } = sharedTaskAccess("a token", now).make(none);
  const opened = sharedTaskAccess("a token", now).open(access);
  expect(opened).toMatchObject({ taskId, deploymentId: "" });
  expect(sharedTaskAccess("a token", now).holder(opened, "")).toEqual({ kind: "shared" });
  for (const other of ["another token", "", undefined]) {
    expect(refusal(() => sharedTaskAccess(other, now).open(access))).toMatch(/^TOKEN_INVALID/);
  }
});
