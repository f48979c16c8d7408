/**
 * Error reporting of commands: one line that says what was wrong, one that says
 * what to do, and an exit code for scripts. Errors of a server are shown in its
 * own words; failures to reach a server are classified here.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import type { Command } from "commander";
import { codesOf } from "../client/connection-failure.ts";
import {
  DeploymentError,
  DeploymentNotFoundError,
  DeploymentStoppedError,
  errorFacts,
  InvalidArgumentsError,
  TaskNotFoundError,
  TokenError,
  UnknownEndpointError,
} from "../client/index.ts";
import { CliError, ExitCode, type Failure } from "./failure.ts";
import { FlagWords } from "./flag-words.ts";
import { plain } from "./plain.ts";

/**
 * Converts any thrown value to a failure. What a server says of the fields of a request is said of
 * the flags and arguments of the command, if there is one.
 */
export function describeFailure(thrown: unknown, command?: Command): Failure {
  if (thrown instanceof CliError) {
    return { message: thrown.message, hint: thrown.hint, exitCode: thrown.exitCode };
  }
  if (thrown instanceof ConnectError) {
    return describeCall(thrown, command);
  }
  if (thrown instanceof DeploymentError) {
    return describeDeployment(thrown, command);
  }
  const { name, message } = thrown instanceof Error ? thrown : new Error(String(thrown));
  // Ctrl-C at a prompt (Inquirer's own error), or while the command waited.
  if (name === "ExitPromptError" || name === "AbortError") {
    return { message: undefined, hint: undefined, exitCode: ExitCode.interrupted };
  }
  // A setting of this machine: a flag, a variable, or a line of a file of settings.
  const exitCode = name === "ConfigError" ? ExitCode.usage : ExitCode.failed;
  return { message, hint: undefined, exitCode };
}

/**
 * Whether an error is temporary: the server is unreachable or busy, but did not
 * refuse the call. For calls to a server that has responded before.
 */
export function isPassing(err: unknown): boolean {
  return (
    err instanceof ConnectError &&
    (errorFacts(err).reason === undefined ||
      [Code.Unavailable, Code.DeadlineExceeded].includes(err.code))
  );
}

const HINTS: Readonly<Record<string, string>> = {
  TOKEN_INVALID: "log in again: tessera cloud login",
  TOKEN_MISSING: "log in: tessera cloud login",
  ACCESS_DENIED: "tessera token list shows what your tokens may do",
  ADMIN_REQUIRED: "tessera member list shows who is an admin",
  SIGN_IN_REQUIRED: "sign in at the console of the platform",
  LAST_ADMIN: "make somebody else an admin first: tessera member set-role <member> admin",
  VERSION_CONFLICT: "look at it again, and repeat the change if it still fits",
  TASKS_QUEUED: "to lose them: tessera deployment delete <name> --force",
  NO_REVISION: "deploy something to it: tessera deploy <service> --name <name>",
  REVISION_NOT_FOUND: "tessera deployment revisions <name> shows what there is",
  ROUTE_NOT_FOUND:
    "is the endpoint a platform (tessera start), and of this version? tessera cloud current-context shows it",
};

function describeCall(err: ConnectError, command: Command | undefined): Failure {
  const { reason, violations, retryAfterMs } = errorFacts(err);
  if (reason === undefined) {
    return describeTransport(err);
  }
  const hint = named(HINTS[reason], command) ?? retryText(retryAfterMs);
  const words = new FlagWords(command);
  if (reason === "REQUEST_INVALID" && violations.length > 0) {
    // The server's sentence is mostly the first of the violations.
    const isSaid = violations.some(({ description }) => err.rawMessage.includes(description));
    const faults = violations.map((each) => words.ofViolation(each));
    const message = plain([...(isSaid ? [] : [err.rawMessage]), ...faults].join("; "));
    return { message, hint, exitCode: ExitCode.usage };
  }
  return { message: plain(err.rawMessage), hint, exitCode: exitCodeOf(err.code) };
}

/** The hint with what was given to the command: its deployment for `<name>`, and so on. */
function named(hint: string | undefined, command: Command | undefined): string | undefined {
  const { deployment, name } = command?.opts<Readonly<Record<string, unknown>>>() ?? {};
  const given = new Map<string, unknown>([
    ["name", deployment ?? name],
    ...(command?.registeredArguments ?? []).map(
      (each, index) => [each.name(), command?.args[index]] as const,
    ),
  ]);
  return hint?.replace(/<([a-z]+)>/g, (placeholder, key: string) => {
    const word = given.get(key);
    return typeof word === "string" ? plain(word) : placeholder;
  });
}

function retryText(retryAfterMs: number | undefined): string | undefined {
  return retryAfterMs === undefined
    ? undefined
    : `try again in ${Math.ceil(retryAfterMs / 1000)} s`;
}

function exitCodeOf(code: Code): number {
  switch (code) {
    case Code.Unauthenticated:
      return ExitCode.unauthenticated;
    case Code.NotFound:
      return ExitCode.notFound;
    default:
      return ExitCode.failed;
  }
}

const GIVE_TOKEN = "tessera cloud login, or give a token by --token or TESSERA_TOKEN";

/** Converts an error of the deployment client, whose message says what to do. */
function describeDeployment(err: DeploymentError, command: Command | undefined): Failure {
  const { reason = "", retryAfterMs } = err;
  // Advice for programs.
  const [message = ""] = err.message.split(/; if it (?:was|worked) /);
  const hints: Readonly<Record<string, string>> = {
    TOKEN_INVALID: GIVE_TOKEN,
    TOKEN_MISSING: GIVE_TOKEN,
    ACCESS_DENIED:
      "make one, and give it by TESSERA_TOKEN: tessera token create caller --deployment <name>",
    ENDPOINT_NOT_A_TASK: "tessera call <endpoint> calls it",
    TASK_ALREADY_STARTED: "to stop it nevertheless: add --abort",
    ...(err instanceof DeploymentStoppedError && {
      [reason]: "tessera deployment list shows how deployments are",
    }),
  };
  const notFound = [TaskNotFoundError, UnknownEndpointError, DeploymentNotFoundError];
  const exitCode =
    err instanceof TokenError
      ? ExitCode.unauthenticated
      : notFound.some((each) => err instanceof each)
        ? ExitCode.notFound
        : err instanceof InvalidArgumentsError
          ? ExitCode.usage
          : ExitCode.failed;
  return {
    message: plain(message),
    hint: named(hints[reason], command) ?? retryText(retryAfterMs),
    exitCode,
  };
}

const UNREACHABLE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no host of this name",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  ETIMEDOUT: "the host does not answer",
  EHOSTUNREACH: "there is no way to the host",
  ENETUNREACH: "there is no way to the host's network",
  ECONNRESET: "the connection was cut",
  EPROTO: "it does not speak TLS: is it http:// rather than https://?",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS: is it http:// rather than https://?",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS: is it http:// rather than https://?",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT:
    "its certificate is not trusted: name its authority in NODE_EXTRA_CA_CERTS",
  SELF_SIGNED_CERT_IN_CHAIN:
    "its certificate is not trusted: name its authority in NODE_EXTRA_CA_CERTS",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "its certificate is not trusted: name its authority in NODE_EXTRA_CA_CERTS",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host",
};

/** Converts a failed connection, or a response that did not come from a Tessera server. */
function describeTransport(err: ConnectError): Failure {
  const failed = (message: string, hint?: string): Failure => ({
    message,
    hint,
    exitCode: ExitCode.failed,
  });
  const problem = codesOf(err).find((code) => code in UNREACHABLE);
  if (problem !== undefined) {
    return failed(`the server cannot be reached: ${UNREACHABLE[problem]}`, CHECK_ENDPOINT);
  }
  if (err.code === Code.DeadlineExceeded) {
    return failed("the server did not answer in time", "try again; then look whether it is well");
  }
  if (err.code === Code.Canceled) {
    return { message: undefined, hint: undefined, exitCode: ExitCode.interrupted };
  }
  const location = err.metadata.get("location");
  if (location !== null && /^HTTP 3/.test(err.rawMessage)) {
    return failed(`the server sends callers on to ${plain(location)}`, CHECK_ENDPOINT);
  }
  const type = err.metadata.get("content-type") ?? "";
  if (type.startsWith("text/html")) {
    return failed(
      `a web page came back instead of an answer${httpStatus(err)}: the endpoint is not that of a Tessera platform, or something in between answered`,
      CHECK_ENDPOINT,
    );
  }
  const unknown = /^(?:$|HTTP \d|unsupported content type)/.test(err.rawMessage);
  if (unknown) {
    return failed(
      `what came back is not a Tessera platform's answer${httpStatus(err)}`,
      CHECK_ENDPOINT,
    );
  }
  return { message: plain(err.rawMessage), hint: undefined, exitCode: exitCodeOf(err.code) };
}

const CHECK_ENDPOINT =
  "check the endpoint: tessera cloud current-context shows it, tessera cloud login --endpoint <url> sets it";

function httpStatus({ rawMessage }: ConnectError): string {
  const status = /^HTTP (\d{3})/.exec(rawMessage)?.[1];
  return status === undefined ? "" : ` (HTTP ${status})`;
}
