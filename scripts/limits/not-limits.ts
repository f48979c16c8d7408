/** Numbers at the top of modules that bound nothing. */

/** Units, in which limits are written. */
export const UNITS: ReadonlySet<string> = new Set([
  "SECOND_MS",
  "HOUR_MS",
  "DAY_MS",
  "MEBIBYTE",
  "GIBIBYTE",
]);

const REASONS: Readonly<Record<string, readonly string[]>> = {
  "fixed by a format or a protocol": [
    "src/app/operate/backup/format.ts BACKUP_FORMAT",
    "src/app/operate/backup/format.ts TAR_BLOCK_BYTES",
    "src/artifacts/index-file.ts FORMAT",
    "src/artifacts/tar.ts BLOCK",
    "src/metrics/layout.ts AGE_BYTES",
    "src/metrics/layout.ts VALUE_BYTES",
    "src/metrics/selector/write.ts LONE_BYTE",
    "src/pool/egress/socks.ts SOCKS_VERSION",
    "src/pool/egress/socks.ts NO_AUTHENTICATION",
    "src/pool/egress/socks.ts NO_METHOD",
    "src/pool/egress/socks.ts CONNECT",
    "src/pool/egress/socks.ts IPV4",
    "src/pool/egress/socks.ts NAME",
    "src/pool/egress/socks.ts IPV6",
    "src/pool/file-exchange.ts MAX_BYTES_PER_CHARACTER",
    "src/pool/untrusted.ts BACKSLASH",
    "src/pool/untrusted.ts CLOSES",
    "src/pool/untrusted.ts COMMA",
    "src/pool/untrusted.ts OPENS",
    "src/pool/untrusted.ts QUOTE",
    "src/pool/untrusted.ts STRING",
    "src/pool/usage.ts BLOCK_BYTES",
    "src/pool/usage.ts MS_PER_TICK",
    "src/pool/check.ts MAX_BYTES_PER_CHARACTER",
    "src/protocol/egress.ts EGRESS_RELAY_PORT",
    "src/protocol/frames.ts FORMAT",
    "src/protocol/frames.ts LENGTH_BYTES",
    "src/protocol/frames.ts PREFIX_BYTES",
    "src/worker/outbox.ts MAX_BYTES_PER_CHARACTER",
    "src/protocol/messages.ts CHANNEL_DESCRIPTOR",
    "src/server/rpc/engine/unimplemented.ts END_STREAM",
    "src/storage/postgres/connection.ts INT8_OID",
    "src/tasks/id.ts TAIL_LENGTH",
  ],
  "how long a secret or a signature is": [
    "src/auth/one-time-codes.ts CODE_LENGTH",
    "src/auth/devices.ts ID_LENGTH",
    "src/app/operate/backup/seal.ts KEY_BYTES",
    "src/app/operate/backup/seal.ts NONCE_BYTES",
    "src/app/operate/backup/seal.ts SALT_BYTES",
    "src/app/operate/backup/seal.ts TAG_BYTES",
    "src/auth/keys-file.ts KEY_BYTES",
    "src/auth/keys.ts NONCE_BYTES",
    "src/auth/keys.ts TAG_BYTES",
    "src/auth/token-format.ts CHECKSUM_LENGTH",
    "src/auth/token-format.ts HINT_LENGTH",
    "src/auth/token-format.ts RANDOM_LENGTH",
    "src/auth/token-format.ts TOKEN_LENGTH",
    "src/server/rpc/page.ts SIGNATURE_BYTES",
  ],
  "a weight, or a part of something": [
    "src/pool/scaler.ts FULLNESS",
    "src/pool/scaler.ts NEGLIGIBLE",
    "src/queue/estimate.ts DRAINED_PART",
    "src/queue/estimate.ts WEIGHT",
    "src/tasks/retry.ts JITTER",
  ],
  "what something counts for in a sum": [
    "src/metrics/selector/pattern.ts FOLDED_RANGE_SIZE",
    "src/metrics/selector/pattern.ts PROPERTY_SIZE",
    "src/storage/sqlite/oldest-waiting.ts ABOVE_ALL",
  ],
  "how wide something is on a terminal": [
    "src/cli/progress.ts BAR_CELLS",
    "src/cli/progress.ts LINE_CELLS",
    "src/cli/waiting.ts BAR_CELLS",
  ],
};

/** By `file NAME`. */
export const NOT_LIMITS: ReadonlySet<string> = new Set(Object.values(REASONS).flat());
