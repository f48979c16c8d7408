/** Ids of workers, which say where they run: the node's name, a slash, and an id of its own. */

/** An id of a worker of this node. */
export function workerIdOn(node: string, id: string): string {
  return `${node}/${id}`;
}

/** The node of a worker; empty for an id without one. */
export function nodeOf(workerId: string): string {
  return workerId.slice(0, Math.max(0, workerId.lastIndexOf("/")));
}

/** The id of a worker without its node, which tells callers nothing of where it runs. */
export function ownIdOf(workerId: string): string {
  return workerId.slice(workerId.lastIndexOf("/") + 1);
}
