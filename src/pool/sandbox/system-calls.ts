/**
 * Linux system calls that a sandboxed worker may not make, by their numbers
 * (`arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`
 * of Linux). Node needs none of them, and each has led out of a sandbox, changes
 * the machine, keeps memory where the limits do not see it, or looks into a process.
 */

/** The architectures that the filter knows, by Node's names (`process.arch`). */
export type Architecture = "x64" | "arm64";

/** The number of a system call in each architecture; undefined where it has none. */
export interface SystemCall {
  readonly x64?: number;
  readonly arm64?: number;
}

/** `AUDIT_ARCH_*`: what the kernel tells a filter about the architecture of a call. */
export const AUDIT_ARCHITECTURES: { readonly [each in Architecture]: number } = {
  x64: 0xc000003e,
  arm64: 0xc00000b7,
};

/**
 * The highest number that was reviewed (Linux 6.18: `file_setattr`). A call that
 * is newer answers ENOSYS, as on an older kernel; so do x32's, which begin at 2^30.
 */
export const MAX_SYSTEM_CALL_NUMBER = 469;

export const CLONE: SystemCall = { x64: 56, arm64: 220 };
export const CLONE3: SystemCall = { x64: 435, arm64: 435 };
export const SOCKET: SystemCall = { x64: 41, arm64: 198 };
export const SOCKETPAIR: SystemCall = { x64: 53, arm64: 199 };
export const SETSOCKOPT: SystemCall = { x64: 54, arm64: 208 };
export const MMAP: SystemCall = { x64: 9, arm64: 222 };

const NAMESPACES_AND_MOUNTS: readonly SystemCall[] = [
  { x64: 272, arm64: 97 }, // unshare
  { x64: 308, arm64: 268 }, // setns
  { x64: 165, arm64: 40 }, // mount
  { x64: 166, arm64: 39 }, // umount2
  { x64: 155, arm64: 41 }, // pivot_root
  { x64: 161, arm64: 51 }, // chroot
  { x64: 428, arm64: 428 }, // open_tree
  { x64: 429, arm64: 429 }, // move_mount
  { x64: 430, arm64: 430 }, // fsopen
  { x64: 431, arm64: 431 }, // fsconfig
  { x64: 432, arm64: 432 }, // fsmount
  { x64: 433, arm64: 433 }, // fspick
  { x64: 442, arm64: 442 }, // mount_setattr
  { x64: 457, arm64: 457 }, // statmount
  { x64: 458, arm64: 458 }, // listmount
  { x64: 467, arm64: 467 }, // open_tree_attr
  { x64: 303, arm64: 264 }, // name_to_handle_at
  { x64: 304, arm64: 265 }, // open_by_handle_at
];

const OTHER_PROCESSES: readonly SystemCall[] = [
  { x64: 322, arm64: 281 }, // execveat
  { x64: 101, arm64: 117 }, // ptrace
  { x64: 310, arm64: 270 }, // process_vm_readv
  { x64: 311, arm64: 271 }, // process_vm_writev
  { x64: 312, arm64: 272 }, // kcmp
  { x64: 438, arm64: 438 }, // pidfd_getfd
  { x64: 440, arm64: 440 }, // process_madvise
];

const KERNEL: readonly SystemCall[] = [
  { x64: 321, arm64: 280 }, // bpf
  { x64: 298, arm64: 241 }, // perf_event_open
  { x64: 323, arm64: 282 }, // userfaultfd
  { x64: 425, arm64: 425 }, // io_uring_setup
  { x64: 426, arm64: 426 }, // io_uring_enter
  { x64: 427, arm64: 427 }, // io_uring_register
  { x64: 248, arm64: 217 }, // add_key
  { x64: 249, arm64: 218 }, // request_key
  { x64: 250, arm64: 219 }, // keyctl
  { x64: 246, arm64: 104 }, // kexec_load
  { x64: 320, arm64: 294 }, // kexec_file_load
  { x64: 175, arm64: 105 }, // init_module
  { x64: 313, arm64: 273 }, // finit_module
  { x64: 176, arm64: 106 }, // delete_module
  { x64: 103, arm64: 116 }, // syslog
  { x64: 163, arm64: 89 }, // acct
  { x64: 179, arm64: 60 }, // quotactl
  { x64: 443, arm64: 443 }, // quotactl_fd
  { x64: 169, arm64: 142 }, // reboot
  { x64: 167, arm64: 224 }, // swapon
  { x64: 168, arm64: 225 }, // swapoff
  { x64: 170, arm64: 161 }, // sethostname
  { x64: 171, arm64: 162 }, // setdomainname
  { x64: 164, arm64: 170 }, // settimeofday
  { x64: 159, arm64: 171 }, // adjtimex
  { x64: 227, arm64: 112 }, // clock_settime
  { x64: 305, arm64: 266 }, // clock_adjtime
  { x64: 300, arm64: 262 }, // fanotify_init
  { x64: 153, arm64: 58 }, // vhangup
  { x64: 135, arm64: 92 }, // personality
  { x64: 212, arm64: 18 }, // lookup_dcookie
  { x64: 180, arm64: 42 }, // nfsservctl
  { x64: 172 }, // iopl
  { x64: 173 }, // ioperm
  { x64: 154 }, // modify_ldt
  { x64: 134 }, // uselib
  { x64: 136 }, // ustat
  { x64: 139 }, // sysfs
  { x64: 156 }, // _sysctl
];

/** Memory that no resident set size counts, or that belongs to a NUMA node. */
const UNSEEN_MEMORY: readonly SystemCall[] = [
  { x64: 319, arm64: 279 }, // memfd_create
  { x64: 447, arm64: 447 }, // memfd_secret
  { x64: 29, arm64: 194 }, // shmget
  { x64: 64, arm64: 190 }, // semget
  { x64: 68, arm64: 186 }, // msgget
  { x64: 240, arm64: 180 }, // mq_open
  { x64: 278, arm64: 75 }, // vmsplice
  { x64: 237, arm64: 235 }, // mbind
  { x64: 238, arm64: 237 }, // set_mempolicy
  { x64: 239, arm64: 236 }, // get_mempolicy
  { x64: 256, arm64: 238 }, // migrate_pages
  { x64: 279, arm64: 239 }, // move_pages
  { x64: 450, arm64: 450 }, // set_mempolicy_home_node
];

/** Besides `clone`, what starts a process. */
export const NEW_PROCESS: readonly SystemCall[] = [
  { x64: 57 }, // fork
  { x64: 58 }, // vfork
];

/** Answered with EPERM. */
export const REFUSED_SYSTEM_CALLS: readonly SystemCall[] = [
  ...NAMESPACES_AND_MOUNTS,
  ...OTHER_PROCESSES,
  ...KERNEL,
  ...UNSEEN_MEMORY,
];
