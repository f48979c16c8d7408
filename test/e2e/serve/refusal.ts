import { expect } from "vitest";
import type { Answer } from "./served.ts";

interface Detail {
  readonly type: string;
  readonly value: string;
  readonly debug: {
    readonly reason?: string;
    readonly metadata?: Readonly<Record<string, string>>;
    readonly fieldViolations?: readonly { readonly field: string; readonly description: string }[];
  };
}

/** An error of the data plane, taken apart. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly reason: string;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The arguments that were refused. */
  readonly fields: readonly string[];
}

/** Reads an answer that has to be an error, and checks that it has the one shape of all errors. */
export function refusal({ status, headers, json, text }: Answer): Refusal {
  expect(status, text).toBeGreaterThanOrEqual(400);
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(Object.keys(json as object).sort(), text).toEqual(["code", "details", "message"]);
  const { code, message, details } = json as {
    code: string;
    message: string;
    details: readonly Detail[];
  };
  const info = details.find(({ type }) => type === "google.rpc.ErrorInfo");
  const bad = details.find(({ type }) => type === "google.rpc.BadRequest");
  expect(text).not.toMatch(/\bat .*:\d+:\d+/);
  return {
    status,
    code,
    reason: info?.debug.reason ?? "none",
    message,
    metadata: info?.debug.metadata ?? {},
    fields: (bad?.debug.fieldViolations ?? []).map(({ field }) => field),
  };
}
