/**
 * The log of one request, whose lines bear its id. A logger of its own costs
 * more than a request's routing, and most requests write no line: it is made
 * for the first.
 */
import type { FastifyBaseLogger } from "fastify";

type Arguments = Parameters<FastifyBaseLogger["info"]>;
type Bindings = Parameters<FastifyBaseLogger["child"]>[0];

/** For Fastify's `childLoggerFactory`. */
export class RequestLog {
  readonly #parent: FastifyBaseLogger;
  readonly #bindings: Bindings;
  #own: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, bindings: Bindings) {
    this.#parent = parent;
    this.#bindings = bindings;
  }

  get level(): string {
    return this.#parent.level;
  }

  child(...args: Parameters<FastifyBaseLogger["child"]>): FastifyBaseLogger {
    return this.#log().child(...args);
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
    this.#own ??= this.#parent.child(this.#bindings);
    return this.#own;
  }
}
