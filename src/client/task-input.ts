/** Reads the arguments that a task was submitted with. */

/** A file in the arguments of a task. */
export interface TaskInputFile {
  /** The argument that it was given for; empty if the service no longer has it. */
  readonly argument: string;
  /** As it was sent; may be empty. */
  readonly name: string;
  /** Media type, such as `image/png`. */
  readonly type: string;
  /** In bytes. */
  readonly size: number;
}

/** What a task was submitted with. */
export interface TaskInput {
  /** By name. In place of a file they have its place in `files`, in place of a list of files a list. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly files: readonly TaskInputFile[];
}

interface ArgumentsJson {
  readonly arguments?: Record<string, unknown>;
  readonly files?: readonly {
    readonly argument?: string;
    readonly filename?: string;
    readonly content_type?: string;
    readonly size?: number;
  }[];
}

export function readArguments(json: object): TaskInput {
  const { arguments: values = {}, files = [] } = json as ArgumentsJson;
  return {
    values,
    files: files.map(({ argument = "", filename = "", content_type = "", size = 0 }) => ({
      argument,
      name: filename,
      type: content_type,
      size,
    })),
  };
}
