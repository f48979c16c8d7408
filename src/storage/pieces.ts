/**
 * The part of the storage port for streamed results: the pieces that a task's function has
 * given so far, numbered from 1 in each attempt. A new attempt begins anew; its pieces and
 * those of an earlier one are never read together.
 */
import type { Task } from "../tasks/task.ts";
import type { Attempt, TaskKey } from "./task-key.ts";

/** The form of a piece: the JSON text of a value, a text, or bytes. */
export type PieceForm = "json" | "text" | "bytes";

/** A string, or with the form `bytes` a Uint8Array. */
export type PieceData = string | Uint8Array;

/** Consecutive pieces of an attempt. */
export interface PieceAppend {
  readonly attempt: Attempt;
  readonly form: PieceForm;
  /** The number of the first one. */
  readonly first: number;
  readonly pieces: readonly PieceData[];
}

export interface StoredPiece {
  /** Its number in its attempt, from 1. */
  readonly sequence: number;
  readonly data: PieceData;
}

/** A place among the pieces of a task: after this piece of this attempt. */
export interface PiecePosition {
  /** 0: at the beginning. */
  readonly attempt: number;
  /** 0: before the first piece of the attempt. */
  readonly sequence: number;
}

export interface PiecePage {
  readonly task: Task;
  /** Of the pieces; undefined where there are none. */
  readonly form: PieceForm | undefined;
  /** Pieces of the task's current or last attempt, in order and without gaps. */
  readonly pieces: readonly StoredPiece[];
  /** Further pieces may be stored already. */
  readonly more: boolean;
}

export interface PieceStorage {
  /**
   * Appends pieces to running attempts. Returns whether each append was kept: false where the
   * attempt was stale. A repeated append changes nothing. The first piece of an attempt deletes
   * those of earlier attempts.
   */
  appendPieces(parameters: { readonly appends: readonly PieceAppend[] }): Promise<boolean[]>;

  /**
   * Reads pieces of the task's current or last attempt: those after the position if it is of
   * that attempt, otherwise from the first. A page ends with the piece that brings it to
   * `maxBytes`, or some pieces later. Undefined when the task does not exist.
   */
  readPieces(
    parameters: TaskKey & { readonly after: PiecePosition; readonly maxBytes: number },
  ): Promise<PiecePage | undefined>;
}
