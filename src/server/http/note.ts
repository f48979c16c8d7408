/** What a request turned out to be about, for its line in the log. */

export interface CallNote {
  /** The task that was submitted or asked for. */
  taskId?: string;
  traceId?: string;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Absent where calls are not logged. */
    note?: CallNote;
  }
}
