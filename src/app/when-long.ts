/** Models and packages may well take seconds; longer than this, people ask what it waits for. */
const LONG_MS = 5_000;

/** Calls `tell` once when loading takes long; settles as the loading does. */
export async function whenLong<Loaded>(
  loading: Promise<Loaded>,
  tell: (seconds: number) => void,
): Promise<Loaded> {
  const timer = setTimeout(() => tell(LONG_MS / 1_000), LONG_MS);
  try {
    return await loading;
  } finally {
    clearTimeout(timer);
  }
}
