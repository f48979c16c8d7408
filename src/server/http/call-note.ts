/** Facts about a call that are found while it runs, for its line in the access log. */

export interface CallNote {
  /** The task that was submitted or requested. */
  taskId?: string;
  traceId?: string;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Absent where calls are not logged. */
    note?: CallNote;
  }
}
