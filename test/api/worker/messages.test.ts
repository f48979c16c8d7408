import { create, toBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { WorkResponseSchema } from "../../../gen/tessera/v1/worker_pb.js";
import { toResponse } from "../../../src/api/worker/messages.ts";
import { giveBack } from "../../../src/collections/bytes.ts";

it("keeps the files of calls that end, and give their bytes back, before they are sent", () => {
  const data = Buffer.allocUnsafeSlow(20_000).fill(7);
  const file = { contentType: "image/png", data };
  const call = { id: 1, endpoint: "look", taskId: "t", attempt: 1, deadlineMs: 0 };
  const payload = { json: '{"file":0}', files: [file] };
  const calls = [{ ...call, arguments: payload }];
  const response = toResponse({ type: "calls", calls, together: false });
  giveBack(data);
  expect(data.byteLength).toBe(0);
  const sent = toBinary(WorkResponseSchema, create(WorkResponseSchema, response));
  expect(Buffer.from(sent).includes(Buffer.alloc(20_000, 7))).toBe(true);
});
