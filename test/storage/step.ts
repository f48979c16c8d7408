/**
 * One step of the property test: it asks the storage and the reference model
 * the same question and compares the answers. What a step is about is drawn
 * as plain numbers and looked up in the model when it runs, so that shrinking
 * keeps its meaning.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type {
  Attempt,
  Claimed,
  NewTask,
  Storage,
  Survey,
  TaskKey,
} from "../../src/storage/storage.ts";
import type { Platform } from "./accounts/fixtures.ts";
import type { TestDatabase } from "./contract.ts";
import { NOW_MS } from "./fixtures.ts";
import type { QueueModel } from "./model.ts";

export const DEPLOYMENTS = ["deployment-1", "deployment-2"];
const ENDPOINTS = ["a", "b"];
export const LEASES = ["lease-1", "lease-2", "lease-3"];

/** What the model side of a run knows. */
export interface World {
  readonly model: QueueModel;
  nowMs: number;
  /** The latest time so far, for claims that are bounded by a rate: that clock does not go back. */
  latestMs: number;
  /** Every task that was ever offered, to repeat it and to look for it at the end. */
  readonly offered: NewTask[];
  /** Every attempt that ever began: most are stale. */
  readonly attempts: Attempt[];
}

/** The platform that a deployment is of. */
export interface Hosted {
  readonly platform: Platform;
  readonly organizationId: string;
}

export interface Real {
  readonly database: TestDatabase;
  storage: Storage;
  /** What knows the first deployment. */
  readonly hosted: Hosted;
}

export type Step = fc.AsyncCommand<World, Real>;
type Asked = {
  [Name in keyof Storage & keyof QueueModel]: QueueModel[Name] extends (p: infer P) => unknown
    ? { readonly name: Name; readonly parameters: P }
    : never;
}[keyof Storage & keyof QueueModel];

export function world(model: QueueModel): World {
  return { model, nowMs: NOW_MS, latestMs: NOW_MS, offered: [], attempts: [] };
}

export function ask(question: (world: World) => Asked): Step {
  let asked = "not run";
  return {
    check: () => true,
    async run(world, real) {
      const { name, parameters } = question(world);
      asked = `${name} ${JSON.stringify(parameters)}`;
      const expected = call(world.model, name, parameters);
      const actual = await call(real.storage, name, parameters);
      expect(comparable(name, actual)).toEqual(comparable(name, expected));
      remember(world);
    },
    toString: () => asked,
  };
}

function call(target: object, name: string, parameters: unknown): unknown {
  const method = (target as Record<string, (parameters: unknown) => unknown>)[name];
  return method?.call(target, parameters);
}

/** These answer lists in any order. */
const UNORDERED: ReadonlySet<string> = new Set([
  ...["rescueExpired", "closeLease", "expireTasks", "listAttempts", "listAborts"],
]);

function comparable(name: Asked["name"], answer: unknown): unknown {
  if (name === "survey") {
    const { due, suspects, ...others } = answer as Survey;
    return { ...others, due: due.map(queueOf).sort(), suspects: suspects.map(queueOf).sort() };
  }
  if (name === "claimTasks") {
    const { tasks, later } = answer as Claimed;
    return { tasks, later: later.toSorted((a, b) => (a.endpoint < b.endpoint ? -1 : 1)) };
  }
  return UNORDERED.has(name) && Array.isArray(answer)
    ? answer.toSorted((a: TaskKey, b: TaskKey) => (orderOf(a) < orderOf(b) ? -1 : 1))
    : answer;
}

function queueOf({ deploymentId, endpoint }: Survey["due"][number]): string {
  return `${deploymentId}/${endpoint}`;
}

function orderOf({ deploymentId, taskId }: TaskKey): string {
  return `${deploymentId}/${taskId}`;
}

function remember({ model, attempts }: World): void {
  for (const { task, leaseId } of model.tasks.values()) {
    const { deploymentId, taskId, attempt } = task;
    const known = attempts.some((one) => one.taskId === taskId && one.attempt === attempt);
    if (leaseId !== undefined && !known) {
      attempts.push({ deploymentId, taskId, leaseId, attempt });
    }
  }
}

export function pick<Value>(values: readonly Value[], index: number): Value | undefined {
  return values[index % (values.length || 1)];
}

export const NOBODY = { deploymentId: "nowhere", taskId: "nothing", leaseId: "none", attempt: 1 };

/** Recent ones more often: the others are mostly over. */
export function pickRecent<Value>(values: readonly Value[], index: number): Value | undefined {
  return pick(index % 4 ? values.slice(-4) : values, index);
}

export const index = fc.nat(1_000);
/** Mostly one of them: tasks have to meet each other. */
export const deploymentId = fc.constantFrom("deployment-1", ...DEPLOYMENTS, "deployment-1");
export const endpoint = fc.constantFrom(...ENDPOINTS);
export const leaseId = fc.constantFrom(...LEASES);
