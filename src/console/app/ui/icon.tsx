/** The path of the icon for saving something as a file. */
export const DOWNLOAD = "M8 2.5v7.5M4.75 7 8 10.25 11.25 7M3 13h10";

/** An outline of 16 by 16, for decoration beside words. */
export function Icon({ path }: { readonly path: string }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
