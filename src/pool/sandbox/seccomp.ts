/**
 * The seccomp filter of a sandboxed worker, as a classic BPF program (Linux,
 * `Documentation/userspace-api/seccomp_filter.rst`, `include/uapi/linux/filter.h`):
 * - the refused system calls answer EPERM; unknown ones ENOSYS;
 * - threads may be started; processes only where the worker may have some, and then in its own
 *   namespaces;
 * - sockets are of the kinds that Node uses: Unix, TCP and UDP over IPv4 and IPv6, and the
 *   netlink socket that lists network interfaces; pairs of sockets are of Unix;
 * - buffers of sockets keep the kernel's own sizes, and sockets have no filters: nobody sees
 *   from outside how much such a one holds;
 * - no memory is shared without a file: what a program unmaps of it stays, and counts nowhere;
 * - a call of another architecture, such as a 32-bit one, ends the process.
 */
import {
  type Architecture,
  AUDIT_ARCHITECTURES,
  CLONE,
  CLONE3,
  MAX_SYSTEM_CALL_NUMBER,
  MMAP,
  NEW_PROCESS,
  REFUSED_SYSTEM_CALLS,
  SETSOCKOPT,
  SOCKET,
  SOCKETPAIR,
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
 * Where the words of `struct seccomp_data` begin, in bytes; of the arguments the low words, on a
 * little-endian machine.
 */
const OFFSETS = { number: 0, architecture: 4, arguments: 16 } as const;
const ARGUMENT_BYTES = 8;

/** Answers of a filter; that of an error has the error's number in its low 16 bits. */
const ANSWERS = {
  allow: 0x7fff0000,
  killProcess: 0x80000000,
  notPermitted: 0x00050000 | 1,
  noSuchCall: 0x00050000 | 38,
  noSuchFamily: 0x00050000 | 97,
  noSuchProtocol: 0x00050000 | 93,
  /** An error with the number 0: the call was not made, and the program takes it for done. */
  asIfDone: 0x00050000,
} as const;

/**
 * Flags of `clone`: CLONE_THREAD for a new thread of the same process; and those for new namespaces,
 * CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID and _NEWNET.
 */
const NEW = { thread: 0x00010000, namespaces: 0x7e020000 } as const;

const UNIX = 1;
/** The protocols of the families AF_INET, AF_INET6 (any, TCP, UDP) and AF_NETLINK (NETLINK_ROUTE). */
const PROTOCOLS: readonly (readonly [family: number, protocols: readonly number[]])[] = [
  [2, [0, 6, 17]],
  [10, [0, 6, 17]],
  [16, [0]],
];

const SOL_SOCKET = 1;
/** SO_SNDBUF and SO_RCVBUF. */
const BUFFER_SIZES = [7, 8];
/** SO_ATTACH_FILTER, SO_ATTACH_BPF, and SO_ATTACH_REUSEPORT_CBPF and _EBPF. */
const SOCKET_FILTERS = [26, 50, 51, 52];

/** MAP_ANONYMOUS; and the bit that MAP_SHARED and MAP_SHARED_VALIDATE have, and MAP_PRIVATE has not. */
const MAP = { anonymous: 0x20, shared: 0x01 } as const;

/** The size of a `struct sock_filter`. */
const INSTRUCTION_BYTES = 8;

interface Instruction {
  readonly code: number;
  readonly value: number;
  /** Instructions to skip when the condition holds, or does not. */
  readonly ifTrue?: number;
  readonly ifFalse?: number;
}

export interface FilterOptions {
  /**
   * Memory may be shared without a file, as drivers of GPUs need for what their devices read.
   * Default: false.
   */
  readonly sharedMemory?: boolean;
  /** Processes may be started. Default: false. */
  readonly processes?: boolean;
}

/** The filter for an architecture, ready for `bwrap --seccomp`. */
export function seccompFilter(
  architecture: Architecture,
  { sharedMemory = false, processes = false }: FilterOptions = {},
): Buffer {
  return assemble([
    load(OFFSETS.architecture),
    skipIf(OPERATIONS.jumpIfEqual, AUDIT_ARCHITECTURES[architecture], 1),
    answer(ANSWERS.killProcess),
    load(OFFSETS.number),
    ...answerIf(OPERATIONS.jumpIfGreater, MAX_SYSTEM_CALL_NUMBER, ANSWERS.noSuchCall),
    ...REFUSED_SYSTEM_CALLS.flatMap((call) => refuse(call[architecture])),
    ...(processes ? [] : NEW_PROCESS.flatMap((call) => refuse(call[architecture]))),
    // Its flags are in memory, where no filter can read them; the C library then uses `clone`.
    ...answerIf(OPERATIONS.jumpIfEqual, numberOf(CLONE3, architecture), ANSWERS.noSuchCall),
    ...when(numberOf(CLONE, architecture), [
      loadArgument(0),
      ...(processes
        ? answerIf(OPERATIONS.jumpIfAnyBit, NEW.namespaces, ANSWERS.notPermitted)
        : [skipIf(OPERATIONS.jumpIfAnyBit, NEW.thread, 1), answer(ANSWERS.notPermitted)]),
      answer(ANSWERS.allow),
    ]),
    ...when(numberOf(SOCKET, architecture), [
      loadArgument(0),
      ...answerIf(OPERATIONS.jumpIfEqual, UNIX, ANSWERS.allow),
      ...PROTOCOLS.flatMap(([family, protocols]) =>
        when(family, [
          loadArgument(2),
          ...protocols.flatMap((each) => answerIf(OPERATIONS.jumpIfEqual, each, ANSWERS.allow)),
          answer(ANSWERS.noSuchProtocol),
        ]),
      ),
      answer(ANSWERS.noSuchFamily),
    ]),
    ...when(numberOf(SOCKETPAIR, architecture), [
      loadArgument(0),
      ...answerIf(OPERATIONS.jumpIfEqual, UNIX, ANSWERS.allow),
      answer(ANSWERS.noSuchFamily),
    ]),
    ...when(numberOf(SETSOCKOPT, architecture), [
      loadArgument(1),
      skipIf(OPERATIONS.jumpIfEqual, SOL_SOCKET, 1),
      answer(ANSWERS.allow),
      loadArgument(2),
      ...BUFFER_SIZES.flatMap((each) => answerIf(OPERATIONS.jumpIfEqual, each, ANSWERS.asIfDone)),
      ...SOCKET_FILTERS.flatMap((each) =>
        answerIf(OPERATIONS.jumpIfEqual, each, ANSWERS.notPermitted),
      ),
      answer(ANSWERS.allow),
    ]),
    ...(sharedMemory ? [] : refuseSharedMemory(architecture)),
    answer(ANSWERS.allow),
  ]);
}

function refuseSharedMemory(architecture: Architecture): Instruction[] {
  return when(numberOf(MMAP, architecture), [
    loadArgument(3),
    skipIf(OPERATIONS.jumpIfAnyBit, MAP.anonymous, 1),
    answer(ANSWERS.allow),
    skipIf(OPERATIONS.jumpIfAnyBit, MAP.shared, 1),
    answer(ANSWERS.allow),
    answer(ANSWERS.notPermitted),
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

/** Reads the low word of an argument, counted from 0. */
function loadArgument(index: number): Instruction {
  return load(OFFSETS.arguments + ARGUMENT_BYTES * index);
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

/** Runs the instructions, the last of which answers, where this value was read. */
function when(value: number, instructions: readonly Instruction[]): Instruction[] {
  return [
    { code: OPERATIONS.jumpIfEqual, value, ifTrue: 0, ifFalse: instructions.length },
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
