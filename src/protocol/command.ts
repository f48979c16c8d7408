/** What is said of a program that is a server of its own: its command, its port, its health. */

/** Command of a program, with its arguments. */
const MAX_COMMAND_BYTES = 8 * 1024;
/** Path at which a program says that it is ready. */
const MAX_HEALTH_CHARACTERS = 255;
/** A path with its query, as it stands in a request. */
const HEALTH = /^\/[!-~]*$/;

/** A program that listens on a port of its own. */
export interface Program {
  /** The program and its arguments. `{port}` stands for the port, `{model:NAME}` for a model's folder. */
  readonly command: readonly string[];
  /** Where it listens. Default: a free port, which `{port}` and the variable `PORT` tell it. */
  readonly port?: number;
  /** The path at which it answers with 2xx once it is ready. Default: it is when its port accepts. */
  readonly health?: string;
}

/** Which option is wrong, and how it has to be. */
interface ProgramFault {
  readonly option: keyof Program;
  readonly message: string;
}

/** What is wrong with the options of a program; undefined: nothing. */
export function faultOfProgram(
  given: {
    readonly [option in keyof Program]: unknown;
  },
): ProgramFault | undefined {
  const { command, port, health } = given;
  if (!isCommand(command)) {
    return {
      option: "command",
      message: `must be a list of texts, first the program, such as ["vllm", "serve", "--port", "{port}"], of at most ${MAX_COMMAND_BYTES} bytes together and without NUL`,
    };
  }
  if (port !== undefined && !isPort(port)) {
    return { option: "port", message: "must be a whole number from 1 to 65535" };
  }
  if (health !== undefined && !isHealth(health)) {
    return {
      option: "health",
      message: `must be a path such as "/health", of at most ${MAX_HEALTH_CHARACTERS} characters without spaces`,
    };
  }
  return undefined;
}

function isCommand(command: unknown): command is readonly string[] {
  return (
    Array.isArray(command) &&
    command.every((each) => typeof each === "string" && !each.includes("\0")) &&
    command.length > 0 &&
    command[0] !== "" &&
    Buffer.byteLength(command.join(" ")) <= MAX_COMMAND_BYTES
  );
}

function isPort(port: unknown): port is number {
  return Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 65_535;
}

function isHealth(health: unknown): health is string {
  return (
    typeof health === "string" && health.length <= MAX_HEALTH_CHARACTERS && HEALTH.test(health)
  );
}
