/** Reads what may be deleted while somebody looks at it. */
import { type UseSuspenseQueryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { isMissing } from "./errors.ts";

/** Its data, as long as it is there; then the page says that it is not. */
export function usePresent<Data, Key extends readonly unknown[]>(
  options: UseSuspenseQueryOptions<Data, Error, Data, Key>,
): Data {
  const { data, error } = useSuspenseQuery(options);
  if (isMissing(error)) {
    throw error;
  }
  return data;
}
