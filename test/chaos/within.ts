/** The promise, or an error when it takes longer: nothing here may hang. */
export async function within<Value>(
  ms: number,
  what: string,
  promise: Promise<Value>,
): Promise<Value> {
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => over.reject(new Error(`${what} took longer than ${ms / 1_000} s`)),
    ms,
  );
  try {
    return await Promise.race([promise, over.promise]);
  } finally {
    clearTimeout(timer);
  }
}
