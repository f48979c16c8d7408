import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ResultsSchema } from "../../gen/tessera/v1/worker_pb.js";
import { resultOf } from "../../src/agent/messages.ts";
import { remoteResults } from "../../src/api/worker/messages.ts";
import type { CallFailure } from "../../src/protocol/messages.ts";

const FAILURE: CallFailure = { code: "internal", reason: "CALL_FAILED", message: "no" };

const arrived = (failure: CallFailure) =>
  remoteResults(create(ResultsSchema, { results: [resultOf(1n, { kind: "failure", failure })] }));

test.each<[string, CallFailure]>([
  ["no more than it needs", FAILURE],
  ["a stack", { ...FAILURE, stack: "at" }],
  ["arguments that are wrong", { ...FAILURE, violations: [{ path: "a", message: "no" }] }],
  ["a status of its own", { ...FAILURE, code: "invalid_argument", status: 422 }],
])("a failure of a joined worker arrives as it was, with %s", (_, failure) => {
  expect(arrived(failure)).toEqual([{ id: 1, failure }]);
});

test("a failure of a joined worker with a status of success is none", () => {
  expect(arrived({ ...FAILURE, status: 200 })).toBeUndefined();
});
