/** `en` as `en-US`, for services that want a region: the likeliest one (Unicode's likely subtags); others as they are. */
export function withRegion(languageCode: string): string {
  if (languageCode.includes("-")) return languageCode;
  try {
    const { language, region } = new Intl.Locale(languageCode).maximize();
    return region === undefined ? languageCode : `${language}-${region}`;
  } catch {
    // No language tag at all: the service says so.
    return languageCode;
  }
}
