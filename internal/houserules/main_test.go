package houserules

// root is the root of the project. Each test changes to it by itself: go test records the
// files that a test reads, and so knows when a cached result is out of date, only if the
// directory changes while a test runs.
const root = "../.."
