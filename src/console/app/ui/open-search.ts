/**
 * The row of a list that is open, by its key, as the address says it: so a link shows it. An empty
 * one says that none is, where a list has one open by itself.
 */
export interface OpenSearch {
  readonly open?: string;
}

/** Reads the key from an address, where one that is a number is read as a number. */
export const readOpen = ({ open }: Record<string, unknown>): OpenSearch =>
  open === undefined ? {} : { open: String(open) };
