/** Shown while a page loads; it appears only after a moment, so that quick loads do not flicker. */
export function Loading() {
  return (
    <p className="loading" role="status">
      Loading…
    </p>
  );
}
