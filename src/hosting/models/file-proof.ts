/** Proof of a file's content while it passes: the digest that its source has told. */
import { createHash, type Hash } from "node:crypto";
import { type SourceFile, sourceRefused } from "./source.ts";

/** How a file begins that stands for one in Git LFS. */
const LFS_POINTER = "version https://git-lfs.github.com/spec/v1";

export class ProvenContent {
  readonly #file: SourceFile;
  /** Undefined where the source proves nothing. */
  readonly #hash: Hash | undefined;
  #head: string;

  constructor(file: SourceFile, before?: ProvenContent) {
    this.#file = file;
    this.#head = before === undefined ? "" : before.#head;
    this.#hash = before === undefined ? newHash(file) : before.#hash?.copy();
  }

  /** Another one at the same place, for bytes that may have to come again. */
  copy(): ProvenContent {
    return new ProvenContent(this.#file, this);
  }

  update(chunk: Uint8Array): void {
    if (this.#head.length < LFS_POINTER.length) {
      this.#head += Buffer.from(chunk.subarray(0, LFS_POINTER.length)).toString("latin1");
    }
    this.#hash?.update(chunk);
  }

  /** Whether all that has passed is what the source has told. */
  holds(): boolean {
    return this.#hash === undefined || this.#hash.copy().digest("hex") === this.#file.proof.digest;
  }

  /** Throws SOURCE_REFUSED for another content than the source has told. */
  check(): void {
    const { path } = this.#file;
    if (this.#head.startsWith(LFS_POINTER)) {
      throw sourceRefused(
        `${path} is a pointer of Git LFS in place of its content: upload the content to the repository`,
      );
    }
    if (!this.holds()) {
      throw sourceRefused(
        `${path} is not what its digest at the source says: it was changed or damaged`,
      );
    }
  }
}

function newHash({ proof, size }: SourceFile): Hash | undefined {
  switch (proof.kind) {
    case "sha256":
      return createHash("sha256");
    case "git":
      return createHash("sha1").update(`blob ${size}\0`);
    case "etag":
      return undefined;
  }
}
