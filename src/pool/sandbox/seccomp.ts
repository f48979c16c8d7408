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

/** Loads a 32-bit word of `struct seccomp_data`. */
const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_GREATER = 0x25;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets in `struct seccomp_data`. */
const NUMBER_OFFSET_BYTES = 0;
const ARCHITECTURE_OFFSET_BYTES = 4;
/** The low word of the first argument, on a little-endian machine. */
const FIRST_ARGUMENT_OFFSET_BYTES = 16;

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
/** The error number is in the low 16 bits. */
const ERROR = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Set for a new thread of the same process. */
const CLONE_THREAD_BIT = 0x00010000;
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (with which Node lists network interfaces). */
const SOCKET_FAMILIES = [1, 2, 10, 16];

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
    load(ARCHITECTURE_OFFSET_BYTES),
    skipIf(JUMP_IF_EQUAL, AUDIT_ARCHITECTURES[architecture], 1),
    answer(KILL_PROCESS),
    load(NUMBER_OFFSET_BYTES),
    ...answerIf(JUMP_IF_GREATER, MAX_SYSTEM_CALL_NUMBER, ERROR | ENOSYS),
    ...REFUSED_SYSTEM_CALLS.flatMap((call) => refuse(call[architecture])),
    // Its flags are in memory, where no filter can read them; the C library then uses `clone`.
    ...answerIf(JUMP_IF_EQUAL, numberOf(CLONE3, architecture), ERROR | ENOSYS),
    ...when(numberOf(CLONE, architecture), [
      load(FIRST_ARGUMENT_OFFSET_BYTES),
      skipIf(JUMP_IF_ANY_BIT, CLONE_THREAD_BIT, 1),
      answer(ERROR | EPERM),
      answer(ALLOW),
    ]),
    ...when(numberOf(SOCKET, architecture), [
      load(FIRST_ARGUMENT_OFFSET_BYTES),
      ...SOCKET_FAMILIES.flatMap((family) => answerIf(JUMP_IF_EQUAL, family, ALLOW)),
      answer(ERROR | EAFNOSUPPORT),
    ]),
    answer(ALLOW),
  ]);
}

function refuse(number: number | undefined): Instruction[] {
  return number === undefined ? [] : answerIf(JUMP_IF_EQUAL, number, ERROR | EPERM);
}

function numberOf(call: SystemCall, architecture: Architecture): number {
  const number = call[architecture];
  if (number === undefined) {
    throw new Error(`a system call of the filter has no number for ${architecture}`);
  }
  return number;
}

function load(offset: number): Instruction {
  return { code: LOAD_WORD, value: offset };
}

function answer(value: number): Instruction {
  return { code: RETURN, value };
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
    { code: JUMP_IF_EQUAL, value: number, ifTrue: 0, ifFalse: instructions.length },
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
