/**
 * Time after which a start says what it waits for: models and packages may well take seconds;
 * longer than this, people ask.
 */
const START_NOTICE_MS = 5_000;

/** Calls `tell` once when loading takes long; settles as the loading does. */
export async function whenLong<Loaded>(
  loading: Promise<Loaded>,
  tell: (seconds: number) => void,
): Promise<Loaded> {
  const timer = setTimeout(() => tell(START_NOTICE_MS / 1_000), START_NOTICE_MS);
  try {
    return await loading;
  } finally {
    clearTimeout(timer);
  }
}
