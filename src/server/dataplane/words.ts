/**
 * The words for the states of a task, by who asks. BentoML's Python clients
 * raise an error on a word that they do not know, and which they know depends
 * on their version; everyone else gets Tessera's own.
 */
import { TaskStatus } from "../../../gen/tessera/v1/task_pb.js";

type Words = Readonly<Record<TaskStatus, string>>;

const OWN: Words = {
  [TaskStatus.UNSPECIFIED]: "",
  [TaskStatus.QUEUED]: "queued",
  [TaskStatus.RUNNING]: "running",
  [TaskStatus.SUCCESS]: "success",
  [TaskStatus.FAILURE]: "failure",
  [TaskStatus.CANCELLED]: "cancelled",
};

/** Clients from 1.4.14. */
const BENTOML: Words = {
  ...OWN,
  [TaskStatus.QUEUED]: "pending",
  [TaskStatus.RUNNING]: "in_progress",
  [TaskStatus.SUCCESS]: "completed",
  [TaskStatus.FAILURE]: "failed",
  [TaskStatus.CANCELLED]: "canceled",
};

/** Clients before 1.4.14 know no word for a task that has not started. */
const BENTOML_BEFORE_1_4_14: Words = {
  ...OWN,
  [TaskStatus.QUEUED]: "in_progress",
  [TaskStatus.RUNNING]: "in_progress",
};

const BENTOML_CLIENT = /^BentoML HTTP Client\/(\d+)\.(\d+)\.(\d+)/;

/** The words for the client with this `User-Agent`. */
export function wordsFor(userAgent: string | undefined): Words {
  if (userAgent === undefined || !userAgent.startsWith("BentoML")) {
    return OWN;
  }
  const [, major, minor, patch] = BENTOML_CLIENT.exec(userAgent) ?? [];
  if (major === undefined) {
    return OWN;
  }
  const version = Number(major) * 1e6 + Number(minor) * 1e3 + Number(patch);
  return version >= 1_004_014 ? BENTOML : BENTOML_BEFORE_1_4_14;
}
