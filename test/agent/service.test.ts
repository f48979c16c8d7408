import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RegisterResponseSchema } from "../../gen/tessera/v1/worker_pb.js";
import { type AgentMachine, JoinedService } from "../../src/agent/service.ts";
import { EnvironmentError } from "../../src/artifacts/environments/environment.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** The number of times that a service is tried in half an hour, and what is said of it. */
async function tried(err: Error): Promise<{ readonly times: number; readonly fault: string }> {
  let times = 0;
  const hold = (): Promise<never> => {
    times += 1;
    return Promise.reject(err);
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const service = new JoinedService({
    machine: { artifacts: { hold }, log } as unknown as AgentMachine,
    registered: create(RegisterResponseSchema),
    source: {} as never,
    files: { keepers: {} } as never,
    reports: { line() {} } as never,
    onChange() {},
  });
  await service.start();
  await vi.advanceTimersByTimeAsync(30 * 60_000);
  await service.kill("the test has ended");
  return { times, fault: service.fault ?? "" };
}

it("tries a service that cannot be started again and again", async () => {
  const found = await tried(new EnvironmentError("ENVIRONMENT_UNAVAILABLE", "no index"));
  expect(found.times).toBeGreaterThan(30);
  expect(found.fault).toBe("ENVIRONMENT_UNAVAILABLE: no index");
});

it("tries a service once whose lock is no lock, and says so", async () => {
  const err = new EnvironmentError("LOCK_INVALID", "it is no lock", { isFinal: true });
  expect(await tried(err)).toEqual({ times: 1, fault: "LOCK_INVALID: it is no lock" });
});
