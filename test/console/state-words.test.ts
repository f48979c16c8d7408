import { expect, it } from "vitest";
import type { DeploymentJson } from "../../gen/tessera/v1/deployment_pb.js";
import type { DeploymentTaskStatsJson } from "../../gen/tessera/v1/organization_task_pb.js";
import {
  endedOf,
  failingIn,
  hourText,
  stateOf,
  statesText,
  toneOfFailed,
  worstFirst,
} from "../../src/console/app/pages/deployments/state-words.ts";

const areFailing = (stats: DeploymentTaskStatsJson): readonly string[] =>
  failingIn({ deployments: [{ ...stats, deployment: "tape" }] });

it("a deployment fails whose calls or tasks of the last hour failed in one of twenty or more", () => {
  expect(areFailing({ total: { failed: 4 } })).toEqual(["tape"]);
  expect(areFailing({ total: { failed: 1, succeeded: 18, cancelled: 1 } })).toEqual(["tape"]);
  expect(areFailing({ calls: 100, failedCalls: 5, total: { succeeded: 3 } })).toEqual(["tape"]);
});

it("a deployment does not fail while less than that did, or nothing was called", () => {
  expect(areFailing({})).toEqual([]);
  expect(areFailing({ calls: 100, failedCalls: 4, total: { failed: 1, succeeded: 20 } })).toEqual(
    [],
  );
});

it("a number of failures is bad from one of twenty on, else a warning, and nothing where it is 0", () => {
  expect([toneOfFailed(0, 0), toneOfFailed(1, 21), toneOfFailed(1, 20)]).toEqual([
    undefined,
    "warning",
    "bad",
  ]);
});

it("tasks that ended are those of every final state", () => {
  expect(endedOf({ succeeded: 3, failed: 2, cancelled: 1, running: 9 })).toBe(6);
});

it("a deployment is failing only while its workers are up", () => {
  const status = "DEPLOYMENT_STATUS_READY";
  expect(stateOf({ name: "tape", status }, ["tape"])).toBe("failing");
  expect(stateOf({ name: "disc", status }, ["tape"])).toBe("ready");
  expect(stateOf({ name: "tape", status: "DEPLOYMENT_STATUS_STOPPED" }, ["tape"])).toBe("stopped");
  expect(stateOf({ name: "tape" }, ["tape"])).toBe("unknown");
});

it("deployments are counted as they are called, those that are not ready by their state, worst first", () => {
  const status = "DEPLOYMENT_STATUS_READY";
  const deployments = ["disc", "reel", "tape"].map((name) => ({ name, status }) as const);
  expect(statesText(deployments, [])).toBe("3 of 3 deployments ready");
  expect(statesText(deployments, ["tape"])).toBe("2 of 3 deployments ready, 1 failing");
  expect(
    statesText(
      [
        ...deployments,
        { name: "off", status: "DEPLOYMENT_STATUS_STOPPED" },
        { name: "bad", status: "DEPLOYMENT_STATUS_FAILED" },
      ],
      ["tape", "reel", "off"],
    ),
  ).toBe("1 of 5 deployments ready, 1 failed, 2 failing, 1 stopped");
});

it("the last hour of a deployment is told by what failed of it, else by how much there was", () => {
  expect(hourText({ calls: 40, failedCalls: 3, total: { failed: 4, succeeded: 5 } })).toBe(
    "3 of 40 calls and 4 of 9 tasks failed in the last hour",
  );
  expect(hourText({ calls: 40, total: { failed: 1 } })).toBe("1 of 1 task failed in the last hour");
  expect(hourText({ calls: 3_000, failedCalls: 1_200 })).toBe(
    "1,200 of 3,000 calls failed in the last hour",
  );
  expect(hourText({ calls: 1, total: { succeeded: 5 } })).toBe(
    "1 call and 5 tasks in the last hour, none failed",
  );
  expect(hourText({ total: { running: 2 } })).toBe("no calls in the last hour");
});

it("the deployments in which something is wrong are first, the worst before others, and all else stays", () => {
  const of = (name: string, state: string) =>
    ({ name, status: `DEPLOYMENT_STATUS_${state}` }) as DeploymentJson;
  const deployments = [
    of("a", "READY"),
    of("b", "DEGRADED"),
    of("c", "STOPPED"),
    of("d", "READY"),
    of("e", "FAILED"),
    of("f", "DEGRADED"),
  ];
  const names = worstFirst(deployments, ["d"]).map(({ name }) => name);
  expect(names).toEqual(["e", "d", "b", "f", "a", "c"]);
});
