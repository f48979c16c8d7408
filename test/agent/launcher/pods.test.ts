/** Machines as Pods of Kubernetes, with a kubectl that the test plays. */
import { expect, it } from "vitest";
import { Pods, readPod } from "../../../src/agent/launcher/pods.ts";
import { Programs } from "./programs.ts";

const NOW_MS = Date.UTC(2026, 0, 31, 12);
const MACHINE = { id: "019aa51c-00aa", deploymentId: "019aa51c-00dd" };
const ORDER = {
  ...MACHINE,
  env: { TESSERA_WORKER_TOKEN: "secret" },
  endsAtMs: NOW_MS + 3_600_000,
};
const POD = `
kind: Pod
metadata: {labels: {kueue.x-k8s.io/queue-name: gpus}}
spec:
  nodeSelector: {gpu: h200}
  containers:
    - name: worker
      image: tessera
      args: [worker]
      envFrom: [{configMapRef: {name: proxy}}]
    - {name: beside, image: logs}`;

const pods = ({ run }: Programs) =>
  new Pods({
    ...{ options: ["--namespace=ml"], pod: readPod(POD, "pod.yaml") },
    ...{ run, now: () => NOW_MS },
  });

it("makes the operator's Pod with the end of its time, and a Secret with its variables", async () => {
  using programs = new Programs();
  programs.play("kubectl", "cat > made");
  await pods(programs).start(ORDER);
  expect(programs.calls("kubectl")).toEqual(["--namespace=ml create -f -"]);
  const name = "tessera-019aa51c-00aa";
  const labels = {
    "tessera.dev/machine": MACHINE.id,
    "tessera.dev/deployment": MACHINE.deploymentId,
  };
  expect(JSON.parse(programs.read("made")).items).toEqual([
    { apiVersion: "v1", kind: "Secret", metadata: { name, labels }, stringData: ORDER.env },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, labels: { "kueue.x-k8s.io/queue-name": "gpus", ...labels } },
      spec: {
        nodeSelector: { gpu: "h200" },
        restartPolicy: "Never",
        activeDeadlineSeconds: 3_600,
        terminationGracePeriodSeconds: 3_600,
        containers: [
          {
            ...{ name: "worker", image: "tessera", args: ["worker"] },
            envFrom: [{ configMapRef: { name: "proxy" } }, { secretRef: { name } }],
          },
          { name: "beside", image: "logs" },
        ],
      },
    },
  ]);
});

it("leaves no Secret of a Pod that a quota refuses, and says why", async () => {
  using programs = new Programs();
  programs.play("kubectl", `case "$*" in *create*) echo 'exceeded quota: pods' >&2; exit 1;; esac`);
  await expect(pods(programs).start(ORDER)).rejects.toThrow("kubectl: exceeded quota: pods");
  expect(programs.calls("kubectl")[1]).toBe(
    "--namespace=ml delete --ignore-not-found --wait=false secret/tessera-019aa51c-00aa",
  );
});

it("lists Pods: those that wait for a node, with the reason, run, and are over or on their way", async () => {
  using programs = new Programs();
  const pod = (id: string, status: object, more: object = {}) => ({
    metadata: {
      labels: { "tessera.dev/machine": id, "tessera.dev/deployment": "d" },
      creationTimestamp: "2026-01-31T12:00:00Z",
      ...more,
    },
    status,
  });
  const scheduled = (status: string, more: object = {}) => ({
    conditions: [{ type: "PodScheduled", status, ...more }],
  });
  const state = (of: object) => ({ containerStatuses: [{ state: of }] });
  const unscheduled = { reason: "Unschedulable", message: "0/3 nodes: Insufficient gpu" };
  const items = [
    pod("m1", { phase: "Pending", ...scheduled("False", unscheduled) }),
    pod("m2", {
      phase: "Pending",
      ...scheduled("True"),
      ...state({ waiting: { reason: "ErrImagePull", message: "not found" } }),
    }),
    pod("m3", { phase: "Running", ...scheduled("True"), ...state({ running: {} }) }),
    pod("m4", {
      phase: "Failed",
      ...scheduled("True"),
      ...state({ terminated: { reason: "Error", exitCode: 1 } }),
    }),
    pod("m5", { phase: "Failed", reason: "Evicted", message: "low on memory" }),
    pod("m6", { phase: "Running", ...scheduled("True") }, { deletionTimestamp: "2026-01-31" }),
  ];
  programs.play("kubectl", `cat <<'END'\n${JSON.stringify({ items })}\nEND`);
  const listed = await pods(programs).list();
  expect(
    listed.map(({ id, isWaiting, isOver, reason }) => [id, isWaiting, isOver, reason]),
  ).toEqual([
    ["m1", true, false, "Unschedulable: 0/3 nodes: Insufficient gpu"],
    ["m2", false, false, "ErrImagePull: not found"],
    ["m3", false, false, ""],
    ["m4", false, true, "Error: exit code 1"],
    ["m5", false, true, "Evicted: low on memory"],
    ["m6", false, true, ""],
  ]);
  expect(listed[0]).toMatchObject({ deploymentId: "d", startedAtMs: NOW_MS });
});

it("deletes a Pod, which may finish its calls, and by force at once", async () => {
  using programs = new Programs();
  programs.play("kubectl", "");
  await pods(programs).stop(MACHINE);
  await pods(programs).stop(MACHINE, { force: true });
  const deleted =
    "--namespace=ml delete --ignore-not-found --wait=false pod/tessera-019aa51c-00aa secret/tessera-019aa51c-00aa";
  expect(programs.calls("kubectl")).toEqual([deleted, `${deleted} --grace-period=0 --force`]);
});

it("refuses a file that is no Pod, by its name", () => {
  for (const text of ["", "kind: Deployment", "kind: Pod", "kind: Pod\nspec: {containers: []}"]) {
    expect(() => readPod(text, "pod.yaml")).toThrow("pod.yaml is not a Pod");
  }
});
