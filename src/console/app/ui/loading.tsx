/** Shown while a page loads; it appears only after a moment, so that quick loads do not flicker. */
export function Loading() {
  return (
    <p className="loading" role="status">
      Loading…
    </p>
  );
}

/** In the place of a page until it is loaded: of its size, so that little moves when it comes. */
export function LoadingPage() {
  return (
    <div className="skeleton-page" role="status">
      <span className="hidden">Loading…</span>
      <i />
      <i />
      <i />
      <i />
    </div>
  );
}
