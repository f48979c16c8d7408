/**
 * Types only: derives a client's type from its service. The service is given as
 * the result of `service({ endpoints })`, as a decorated class, or as a
 * description that `tessera client generate` wrote. Nothing of this exists at
 * run time; the service is only imported as a type.
 */
import type { FileLike } from "./arguments.ts";
import type { ApiEndpoint, StreamingEndpoint, TaskEndpoint } from "./endpoint.ts";

/** The types of an endpoint in a generated description. */
export interface EndpointTypes<Kind extends "api" | "task", Arguments, Result> {
  readonly kind: Kind;
  readonly arguments: Arguments;
  readonly result: Result;
}

/** The default service type: every name is an endpoint, and results are `unknown`. */
export interface AnyService {
  readonly [endpoint: string]: EndpointTypes<"task", Readonly<Record<string, unknown>>, unknown>;
}

/**
 * The client of a service, given as `typeof service` of the function form, as
 * the decorated class (`typeof Summarizer`), or as a generated description.
 *
 * The type checker does not see the decorators of a class. So every public
 * method counts as an endpoint of either kind, and arguments with a default are
 * required. A generated client is more precise.
 */
export type DeploymentClient<Service> = Service extends abstract new () => infer Instance
  ? FromMembers<Instance>
  : string extends keyof Service
    ? FromMembers<Service>
    : Service extends { readonly types?: { readonly endpoints: infer Endpoints } }
      ? FromEndpoints<Endpoints>
      : FromMembers<Service>;

type FromEndpoints<Endpoints> = {
  readonly [Name in keyof Endpoints]: Endpoints[Name] extends {
    readonly types?: { readonly call: infer Call };
  }
    ? FromCall<Call>
    : never;
};

type FromMembers<Members> = {
  readonly [Name in keyof Members as Name extends "setup"
    ? never
    : Members[Name] extends Callable | Described
      ? Name
      : never]: Members[Name] extends Described
    ? FromCall<Members[Name]>
    : Members[Name] extends (...args: infer Parameters) => infer Returned
      ? Called<"task", MethodArguments<Parameters>, Awaited<Returned>>
      : never;
};

type Callable = (...args: never[]) => unknown;

interface Described {
  readonly kind: unknown;
  readonly arguments: unknown;
  readonly result: unknown;
}

type FromCall<Call> = Call extends {
  readonly kind: infer Kind;
  readonly arguments: infer Arguments;
  readonly result: infer Result;
}
  ? Called<Kind, Sent<Arguments>, Result>
  : never;

/** An endpoint of this kind; one that returns nobody knows what may stream. */
type Called<Kind, Arguments, Result> = unknown extends Result
  ? Whole<Kind, Arguments, unknown> & StreamingEndpoint<Arguments, unknown>
  : Result extends AsyncIterable<infer Piece>
    ? Streaming<Kind, Arguments, Piece>
    : Whole<Kind, Arguments, Received<Result>>;

/** One that streams; the pieces of a task are those of its handle. */
type Streaming<Kind, Arguments, Piece> = Kind extends "task"
  ? TaskEndpoint<Arguments, Joined<Piece>, ReceivedPiece<Piece>>
  : ApiEndpoint<Arguments, Joined<Piece>> & StreamingEndpoint<Arguments, ReceivedPiece<Piece>>;

type Whole<Kind, Arguments, Result> = Kind extends "task"
  ? TaskEndpoint<Arguments, Result>
  : ApiEndpoint<Arguments, Result>;

/** The whole of a streamed result: a text, a file, or a list. */
type Joined<Piece> = [Piece] extends [string]
  ? string
  : [Piece] extends [Blob | Uint8Array]
    ? File
    : Received<Piece>[];

type ReceivedPiece<Piece> = [Piece] extends [Blob | Uint8Array] ? Uint8Array : Received<Piece>;

type MethodArguments<Parameters extends readonly unknown[]> = Parameters extends readonly []
  ? Readonly<Record<string, never>>
  : Sent<Parameters[0]>;

/** Arguments as callers pass them: any `FileLike` in place of a file. */
type Sent<Arguments> = { [Name in keyof Arguments]: SentValue<Arguments[Name]> };

type SentValue<Value> = unknown extends Value
  ? unknown
  : Value extends Blob | Uint8Array
    ? FileLike
    : Value extends readonly (infer Item)[]
      ? Item extends Blob | Uint8Array
        ? readonly FileLike[]
        : Value
      : Value;

/** A result as it arrives through JSON, which the caller may change; bytes arrive as a `File`. */
type Received<Value> = unknown extends Value
  ? unknown
  : Value extends Blob | Uint8Array
    ? File
    : Value extends { toJSON(): infer Json }
      ? Received<Json>
      : Value extends object
        ? { -readonly [Name in keyof Value]: Received<Value[Name]> }
        : Value;
