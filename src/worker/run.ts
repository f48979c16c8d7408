/** The steps of a call in a worker: its arguments are read and checked, its result is written. */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  type Call,
  type CallFailure,
  MAX_INLINE_RESULT_CHARACTERS,
  type SentPayload,
} from "../protocol/messages.ts";
import type { Executable } from "../sdk/describe.ts";
import type { CallContext } from "./call-context.ts";
import type { CallFiles } from "./call-files.ts";
import {
  argumentsInvalid,
  callFailed,
  OutputRefused,
  outputInvalid,
  outputRefused,
  resultTooLarge,
} from "./failure.ts";
import {
  type ResultOptions,
  readArguments,
  TooLargeError,
  UnserialisableError,
  writeFile,
  writeJson,
  writeText,
} from "./payload.ts";
import { failureOfStatus, headOf, writeResponse } from "./response.ts";

/** How a call ended. */
export type CallOutcome = { readonly result: SentPayload } | { readonly failure: CallFailure };

/** The arguments of a call, or its failure if the schema refuses them. */
type Checked = { readonly value: unknown } | { readonly failure: CallFailure };

/**
 * Reads and checks the arguments. A promise only if something has to be awaited: the function
 * then begins in the turn in which its call came, before an abort of it is heard.
 */
export function readChecked(
  executable: Executable,
  call: Call,
  callFiles: CallFiles,
): Checked | Promise<Checked> {
  const given = readArguments(call.arguments, executable.arguments.files, callFiles);
  return given instanceof Promise
    ? given.then((value) => check(executable, call, value))
    : check(executable, call, given);
}

function check(
  { arguments: { validate } }: Executable,
  { endpoint }: Call,
  given: unknown,
): Checked | Promise<Checked> {
  const checked = validate(given);
  return checked instanceof Promise
    ? checked.then((result) => checkedOf(endpoint, result))
    : checkedOf(endpoint, checked);
}

function checkedOf(endpoint: string, result: StandardSchemaV1.Result<unknown>): Checked {
  return result.issues === undefined
    ? { value: result.value }
    : { failure: argumentsInvalid(endpoint, result.issues) };
}

/** A call with its context, and how its result is written. */
export interface EndingCall {
  readonly call: Call;
  readonly ctx: CallContext;
  readonly options: ResultOptions;
}

/** The outcome of a call whose function returned this. */
export async function writeResult(
  executable: Executable,
  returned: unknown,
  { call, ctx, options }: EndingCall,
): Promise<CallOutcome> {
  try {
    const outcome =
      returned instanceof Response
        ? { result: await writeResponse(returned, options) }
        : await finish(executable, returned, { endpoint: call.endpoint, options });
    const said = returned instanceof Response ? returned : undefined;
    const response = headOf(call.endpoint, ctx.said, said);
    if (response === undefined || "failure" in outcome) {
      return outcome;
    }
    const { result } = outcome;
    const failure = failureOfStatus(executable.manifest.kind, result, response.status);
    return failure ? { failure } : { result: { ...result, response } };
  } catch (err) {
    return { failure: failureOf(err, call, ctx) };
  }
}

/** The failure of a call that ended with an exception. */
export function failureOf(err: unknown, { endpoint }: Call, ctx: CallContext): CallFailure {
  if (err instanceof OutputRefused) {
    return err.failure;
  }
  return err instanceof TooLargeError
    ? resultTooLarge(endpoint, err.maxBytes)
    : callFailed(err, ctx.abortReason);
}

async function finish(
  { result }: Executable,
  returned: unknown,
  { endpoint, options }: { readonly endpoint: string; readonly options: ResultOptions },
): Promise<CallOutcome> {
  let value = returned;
  if (result.schema !== undefined) {
    let checked = result.schema["~standard"].validate(returned);
    if (checked instanceof Promise) {
      checked = await checked;
    }
    if (checked.issues !== undefined) {
      return { failure: outputRefused(endpoint, checked.issues) };
    }
    value = checked.value;
  }
  try {
    if (result.file !== undefined) {
      return { result: await writeFile(value, result.file, options) };
    }
    const written = writeJson(value);
    const { length } = written.json;
    if (length > options.maxResultBytes) {
      throw new TooLargeError(options.maxResultBytes);
    }
    return {
      result:
        length > MAX_INLINE_RESULT_CHARACTERS
          ? await writeText(value, written.json, options)
          : written,
    };
  } catch (err) {
    if (err instanceof UnserialisableError) {
      return { failure: outputInvalid(`the result of ${endpoint} cannot be sent: ${err.message}`) };
    }
    throw err;
  }
}
