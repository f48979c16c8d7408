import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.js";
import { ErrorReasonSchema } from "../gen/tessera/v1/error_pb.js";
import { CATALOGUE, Problem, problem, type Reason, toProblem } from "../src/errors.ts";

const reasons = Object.keys(CATALOGUE) as Reason[];

describe("the catalogue", () => {
  it("lists the reasons of tessera.v1.ErrorReason, in their order", () => {
    const declared = ErrorReasonSchema.values
      .filter(({ number }) => number > 0)
      .map(({ name }) => name.replace(/^ERROR_REASON_/, ""));
    expect(reasons).toEqual(declared);
  });

  it("has no reason that nothing answers with", () => {
    const folder = fileURLToPath(new URL("../src", import.meta.url));
    const source = readdirSync(folder, { recursive: true, encoding: "utf8" })
      // Documents only list what others answer with.
      .filter((path) => path.endsWith(".ts") && !path.includes("openapi"))
      .map((path) => readFileSync(`${folder}/${path}`, "utf8"))
      .join("\n");
    expect(reasons.filter((reason) => !source.includes(`"${reason}"`))).toEqual([]);
  });
});

describe("a problem", () => {
  it.each(reasons)("carries its reason and code: %s", (reason) => {
    const found = problem(reason, "what was wrong");
    expect(found).toMatchObject({ reason, code: CATALOGUE[reason], rawMessage: "what was wrong" });
    expect(found.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason, domain: "tessera", metadata: {} },
    ]);
  });

  it("carries violations, facts, another code, and when to come again", () => {
    const found = problem("CALL_FAILED", "no", {
      code: Code.NotFound,
      violations: [{ field: "texts.0", description: "is empty" }],
      metadata: { task_id: "t" },
      retryAfterMs: 1_500,
    });
    expect(found.code).toBe(Code.NotFound);
    expect(found.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([
      { field: "texts.0", description: "is empty" },
    ]);
    expect(found.findDetails(ErrorInfoSchema)[0]?.metadata).toEqual({ task_id: "t" });
    expect(found.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds).toBe(2n);
    expect(found.metadata.get("retry-after")).toBe("2");
  });

  it("tells a quota of which nothing is left in whole seconds, as the draft of IETF has it", () => {
    const { metadata } = problem("RATE_LIMITED", "no", {
      spentQuota: { name: "gpu", quota: 100.5, windowMs: 86_400_000, resetMs: 59_001 },
    });
    expect(metadata.get("ratelimit-policy")).toBe('"gpu";q=100;w=86400');
    expect(metadata.get("ratelimit")).toBe('"gpu";r=0;t=60');
  });

  it("says how to authenticate when the token is not valid, and names no error when there is none", () => {
    expect(problem("TOKEN_INVALID", "no").metadata.get("www-authenticate")).toBe(
      'Bearer realm="tessera", error="invalid_token"',
    );
    expect(problem("TOKEN_MISSING", "no").metadata.get("www-authenticate")).toBe(
      'Bearer realm="tessera"',
    );
  });
});

describe("what was thrown", () => {
  it("stays as it is when it is a problem", () => {
    const found = problem("TASK_NOT_FOUND", "gone");
    expect(toProblem(found)).toBe(found);
  });

  it.each([
    ["an error", new Error("the password is hunter2")],
    ["a text", "hunter2"],
    ["nothing", undefined],
    ["an object", { hunter2: true }],
    ["an internal error of the library", new ConnectError("hunter2", Code.Internal)],
    ["an unknown error of the library", new ConnectError("hunter2", Code.Unknown)],
  ])("becomes INTERNAL, with its detail only in the cause: %s", (_, thrown) => {
    const found = toProblem(thrown);
    expect(found).toBeInstanceOf(Problem);
    expect(found).toMatchObject({ reason: "INTERNAL", code: Code.Internal });
    expect(found.rawMessage).not.toContain("hunter2");
    expect(found.cause).toBe(thrown);
  });

  it.each([
    [Code.InvalidArgument, "REQUEST_INVALID"],
    [Code.Unimplemented, "ROUTE_NOT_FOUND"],
    [Code.ResourceExhausted, "BODY_TOO_LARGE"],
    [Code.DeadlineExceeded, "CALL_TIMEOUT"],
    [Code.DataLoss, "INTERNAL"],
  ])("keeps code and message when the library says what is wrong: %s", (code, reason) => {
    expect(toProblem(new ConnectError("too much", code))).toMatchObject({
      reason,
      code,
      rawMessage: "too much",
    });
  });

  it("keeps the violations of request validation", () => {
    const thrown = new ConnectError("invalid", Code.InvalidArgument, undefined, [
      {
        desc: BadRequestSchema,
        value: { fieldViolations: [{ field: "wait", description: "no" }] },
      },
    ]);
    expect(toProblem(thrown).violations).toEqual([{ field: "wait", description: "no" }]);
  });
});
