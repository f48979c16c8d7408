/**
 * The log of one request, whose lines bear its id. A logger of its own costs
 * more than a request's routing, and most requests write no line: it is made
 * for the first.
 */
import type { FastifyBaseLogger } from "fastify";

type Arguments = Parameters<FastifyBaseLogger["info"]>;
type ChildArguments = Parameters<FastifyBaseLogger["child"]>;

/**
 * The same log, whose children are made for their first line. For Fastify's
 * `loggerInstance`: what its `childLoggerFactory` makes it checks each time.
 */
export function withRequestLogs<Log extends FastifyBaseLogger>(log: Log): Log {
  const child = (...args: ChildArguments) => new RequestLog(log, args);
  return Object.create(log, { child: { value: child } }) as Log;
}

class RequestLog {
  readonly #parent: FastifyBaseLogger;
  readonly #arguments: ChildArguments;
  #own: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, args: ChildArguments) {
    this.#parent = parent;
    this.#arguments = args;
  }

  get level(): string {
    return this.#parent.level;
  }

  child(...args: ChildArguments): FastifyBaseLogger {
    return new RequestLog(this.#log(), args);
  }

  fatal(...args: Arguments): void {
    this.#log().fatal(...args);
  }

  error(...args: Arguments): void {
    this.#log().error(...args);
  }

  warn(...args: Arguments): void {
    this.#log().warn(...args);
  }

  info(...args: Arguments): void {
    this.#log().info(...args);
  }

  debug(...args: Arguments): void {
    this.#log().debug(...args);
  }

  trace(...args: Arguments): void {
    this.#log().trace(...args);
  }

  silent(...args: Arguments): void {
    this.#log().silent(...args);
  }

  #log(): FastifyBaseLogger {
    this.#own ??= this.#parent.child(...this.#arguments);
    return this.#own;
  }
}
