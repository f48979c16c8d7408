/** The search of the reference, as its address has it. */
export interface ReferenceSearch {
  readonly search?: string;
}

export const readReferenceSearch = ({ search }: Record<string, unknown>): ReferenceSearch =>
  typeof search === "string" && search !== "" ? { search } : {};
