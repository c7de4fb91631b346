package agent

// OpenLog is openLog.
var OpenLog = openLog
