/** The row of a list that is open, by its key. It is in the address, so that a link shows it. */
import { useNavigate, useSearch } from "@tanstack/react-router";

export interface OpenSearch {
  readonly open?: string;
}

/** Reads the key from an address, where one that is a number is read as a number. */
export const readOpen = ({ open }: Record<string, unknown>): OpenSearch =>
  open === undefined || open === "" ? {} : { open: String(open) };

/** The key of the open row, if one is, and the way to open a row or to close it. */
export function useOpenRow(): readonly [key: string | undefined, toggle: (key: string) => void] {
  const navigate = useNavigate();
  const open = useSearch({ strict: false, select: (search) => search.open });
  const toggle = (key: string): void =>
    void navigate({
      to: ".",
      search: (before: object) => ({ ...before, open: key === open ? undefined : key }),
      replace: true,
      resetScroll: false,
    });
  return [open, toggle];
}
