/**
 * The seccomp filter of a sandboxed worker, as a classic BPF program (Linux,
 * `Documentation/userspace-api/seccomp_filter.rst`, `include/uapi/linux/filter.h`):
 * - the refused system calls answer EPERM; unknown ones ENOSYS;
 * - threads may be started, processes may not;
 * - sockets are of the families that Node uses: Unix, IPv4, IPv6, and netlink;
 * - a call of another architecture, such as a 32-bit one, ends the process.
 */
import {
  type Architecture,
  AUDIT_ARCHITECTURES,
  CLONE,
  CLONE3,
  MAX_SYSTEM_CALL_NUMBER,
  REFUSED_SYSTEM_CALLS,
  SOCKET,
  type SystemCall,
} from "./system-calls.ts";

/** Operations of classic BPF; `load` reads a 32-bit word of `struct seccomp_data`. */
const OPERATIONS = {
  load: 0x20,
  jumpIfEqual: 0x15,
  jumpIfGreater: 0x25,
  jumpIfAnyBit: 0x45,
  answer: 0x06,
} as const;

/**
 * Where the words of `struct seccomp_data` begin, in bytes; of the first argument the low
 * word, on a little-endian machine.
 */
const OFFSETS = { number: 0, architecture: 4, firstArgument: 16 } as const;

/** Answers of a filter; that of an error has the error's number in its low 16 bits. */
const ANSWERS = {
  allow: 0x7fff0000,
  killProcess: 0x80000000,
  notPermitted: 0x00050000 | 1,
  noSuchCall: 0x00050000 | 38,
  noSuchFamily: 0x00050000 | 97,
} as const;

/** The flag of `clone` (CLONE_THREAD) for a new thread of the same process. */
const NEW_THREAD = { flag: 0x00010000 } as const;
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (with which Node lists network interfaces). */
const SOCKET_FAMILIES = [1, 2, 10, 16];

/** The size of a `struct sock_filter`. */
const INSTRUCTION_BYTES = 8;

interface Instruction {
  readonly code: number;
  readonly value: number;
  /** Instructions to skip when the condition holds, or does not. */
  readonly ifTrue?: number;
  readonly ifFalse?: number;
}

/** The filter for an architecture, ready for `bwrap --seccomp`. */
export function seccompFilter(architecture: Architecture): Buffer {
  return assemble([
    load(OFFSETS.architecture),
    skipIf(OPERATIONS.jumpIfEqual, AUDIT_ARCHITECTURES[architecture], 1),
    answer(ANSWERS.killProcess),
    load(OFFSETS.number),
    ...answerIf(OPERATIONS.jumpIfGreater, MAX_SYSTEM_CALL_NUMBER, ANSWERS.noSuchCall),
    ...REFUSED_SYSTEM_CALLS.flatMap((call) => refuse(call[architecture])),
    // Its flags are in memory, where no filter can read them; the C library then uses `clone`.
    ...answerIf(OPERATIONS.jumpIfEqual, numberOf(CLONE3, architecture), ANSWERS.noSuchCall),
    ...when(numberOf(CLONE, architecture), [
      load(OFFSETS.firstArgument),
      skipIf(OPERATIONS.jumpIfAnyBit, NEW_THREAD.flag, 1),
      answer(ANSWERS.notPermitted),
      answer(ANSWERS.allow),
    ]),
    ...when(numberOf(SOCKET, architecture), [
      load(OFFSETS.firstArgument),
      ...SOCKET_FAMILIES.flatMap((family) =>
        answerIf(OPERATIONS.jumpIfEqual, family, ANSWERS.allow),
      ),
      answer(ANSWERS.noSuchFamily),
    ]),
    answer(ANSWERS.allow),
  ]);
}

function refuse(number: number | undefined): Instruction[] {
  return number === undefined ? [] : answerIf(OPERATIONS.jumpIfEqual, number, ANSWERS.notPermitted);
}

function numberOf(call: SystemCall, architecture: Architecture): number {
  const number = call[architecture];
  if (number === undefined) {
    throw new Error(`a system call of the filter has no number for ${architecture}`);
  }
  return number;
}

function load(offset: number): Instruction {
  return { code: OPERATIONS.load, value: offset };
}

function answer(value: number): Instruction {
  return { code: OPERATIONS.answer, value };
}

function skipIf(code: number, value: number, count: number): Instruction {
  return { code, value, ifTrue: count, ifFalse: 0 };
}

function answerIf(code: number, value: number, result: number): Instruction[] {
  return [{ code, value, ifTrue: 0, ifFalse: 1 }, answer(result)];
}

/** Runs the instructions, the last of which answers, for the call of this number alone. */
function when(number: number, instructions: readonly Instruction[]): Instruction[] {
  return [
    { code: OPERATIONS.jumpIfEqual, value: number, ifTrue: 0, ifFalse: instructions.length },
    ...instructions,
  ];
}

/** Encodes each instruction as a `struct sock_filter`. */
function assemble(instructions: readonly Instruction[]): Buffer {
  const program = Buffer.alloc(instructions.length * INSTRUCTION_BYTES);
  for (const [index, { code, value, ifTrue = 0, ifFalse = 0 }] of instructions.entries()) {
    const at = index * INSTRUCTION_BYTES;
    program.writeUInt16LE(code, at);
    program.writeUInt8(ifTrue, at + 2);
    program.writeUInt8(ifFalse, at + 3);
    program.writeUInt32LE(value >>> 0, at + 4);
  }
  return program;
}
