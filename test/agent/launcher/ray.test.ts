/** Machines as jobs of Ray, with a dashboard that the test plays. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { RayJobs } from "../../../src/agent/launcher/ray.ts";

const NOW_MS = Date.UTC(2026, 0, 31, 12);
const MACHINE = { id: "019aa51c-00aa", deploymentId: "019aa51c-00dd" };
const NAME = "tessera-019aa51c-00aa";
const ORDER = {
  ...MACHINE,
  env: { TESSERA_WORKER_TOKEN: "secret" },
  endsAtMs: NOW_MS + 3_600_000,
};
const METADATA = {
  "tessera.dev/machine": MACHINE.id,
  "tessera.dev/deployment": MACHINE.deploymentId,
};

let server: Server;
let asked: { readonly call: string; readonly token: string | undefined; readonly body: string }[];
/** What the dashboard answers to each call; what is not named is not there. */
let answers: Record<string, readonly [status: number, body: unknown]>;
beforeEach(async () => {
  asked = [];
  answers = {};
  server = createServer(async (req, res) => {
    const call = `${req.method} ${req.url}`;
    asked.push({ call, token: req.headers.authorization, body: await text(req) });
    const [status, body] = answers[call] ?? [404, "Job does not exist"];
    res.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const address = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const jobs = (options: readonly string[] = [], token?: string, at = address()) =>
  new RayJobs({
    ...{ address: at, token, options, command: ["tessera", "worker"] },
    now: () => NOW_MS,
  });

it("submits a job with its resources, and with the time that it may take to end", async () => {
  answers["POST /api/jobs/"] = [200, { submission_id: NAME }];
  const options = ["entrypoint_num_gpus=0.5", 'entrypoint_resources={"h200": 1}'];
  await jobs(options, "of the cluster").start(ORDER);
  const [{ token, body } = { token: "", body: "" }] = asked;
  expect(token).toBe("Bearer of the cluster");
  const { entrypoint, ...fields } = JSON.parse(body) as Record<string, unknown>;
  expect(fields).toEqual({
    submission_id: NAME,
    ...{ entrypoint_num_cpus: 1, entrypoint_num_gpus: 0.5, entrypoint_resources: { h200: 1 } },
    metadata: METADATA,
    runtime_env: { env_vars: { ...ORDER.env, RAY_JOB_STOP_WAIT_TIME_S: "3600" } },
  });
  expect(entrypoint).toContain("\n'tessera' 'worker' &\n");
  expect(entrypoint).not.toContain("secret");
});

it("says the last line of why a cluster takes no job", async () => {
  answers["POST /api/jobs/"] = [
    500,
    "Traceback (most recent call last):\nValueError: no such GPU\n",
  ];
  await expect(jobs().start(ORDER)).rejects.toThrow(
    `${address()} answered 500: ValueError: no such GPU`,
  );
});

it("lists its jobs: those that wait, with the reason, that run, and that are over", async () => {
  const job = (id: string, status: string, message: string | null = null) => ({
    ...{ type: "SUBMISSION", submission_id: `tessera-${id}`, status, message },
    ...{ start_time: NOW_MS, metadata: { ...METADATA, "tessera.dev/machine": id } },
  });
  const others = [
    { type: "DRIVER", submission_id: null, job_id: "01", status: "RUNNING", metadata: {} },
    { ...job("m9", "RUNNING"), submission_id: "of somebody else" },
  ];
  answers["GET /api/jobs/"] = [
    200,
    [
      job("m1", "PENDING", "waiting for resources"),
      job("m2", "RUNNING", "running"),
      job("m3", "FAILED", "failed with exit code 1, last logs:\nfirst\nno GPU is free\n"),
      job("m4", "STOPPED"),
      ...others,
    ],
  ];
  const listed = await jobs().list();
  expect(
    listed.map(({ id, isWaiting, isOver, reason }) => [id, isWaiting, isOver, reason]),
  ).toEqual([
    ["m1", true, false, "PENDING: waiting for resources"],
    ["m2", false, false, ""],
    ["m3", false, true, "FAILED: no GPU is free"],
    ["m4", false, true, "STOPPED: "],
  ]);
  expect(listed[0]).toMatchObject({ deploymentId: MACHINE.deploymentId, startedAtMs: NOW_MS });
});

it("tells a job to end, and removes one that is over or was never there", async () => {
  answers[`POST /api/jobs/${NAME}/stop`] = [200, { stopped: true }];
  await jobs().stop(MACHINE);
  answers[`POST /api/jobs/${NAME}/stop`] = [200, { stopped: false }];
  answers[`DELETE /api/jobs/${NAME}`] = [200, { deleted: true }];
  await jobs().stop(MACHINE);
  answers = {};
  await jobs().stop(MACHINE);
  const stop = `POST /api/jobs/${NAME}/stop`;
  expect(asked.map(({ call }) => call)).toEqual([stop, stop, `DELETE /api/jobs/${NAME}`, stop]);
});

it("says when nothing answers, or what is no dashboard", async () => {
  answers["GET /api/jobs/"] = [200, "<html>"];
  await expect(jobs().list()).rejects.toThrow("answers with no JSON");
  answers["GET /api/jobs/"] = [200, {}];
  await expect(jobs().list()).rejects.toThrow("lists no jobs");
  answers["GET /api/jobs/"] = [302, ""];
  await expect(jobs().list()).rejects.toThrow(`${address()} answered 302`);
  const withPassword = jobs([], undefined, address().replace("//", "//ada:secret@"));
  await expect(withPassword.list()).rejects.toThrow(/^http:\/\/…@127\.0\.0\.1:\d+ answered 302/);
  const gone = jobs([], undefined, "http://127.0.0.1:9");
  await expect(gone.list()).rejects.toThrow(/does not answer: .*ECONNREFUSED/);
});

it("refuses an option that is no field of a job", () => {
  expect(() => jobs(["--gpus"])).toThrow(/such as entrypoint_num_gpus=1, not "--gpus"/);
});
