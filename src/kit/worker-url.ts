/**
 * Where a worker thread's file is. Node runs workers from compiled JavaScript only, so a module that runs from
 * source (under the test runner) is pointed at its built twin in dist/.
 */
export function workerUrl(relativePath: string, importMetaUrl: string): URL {
  const url = new URL(relativePath, importMetaUrl);
  if (importMetaUrl.endsWith(".ts")) {
    return new URL(url.href.replace(/\/src\/(?!.*\/src\/)/, "/dist/").replace(/\.ts$/, ".js"));
  }
  return new URL(url.href.replace(/\.ts$/, ".js"));
}
