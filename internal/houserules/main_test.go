package houserules

// root is the project's, where the tests run. Each test changes to it by itself: go test sees which files a test reads, and so when a
// cached result is out of date, only if the directory is changed while a test runs.
const root = "../.."
