package ahp

// RootURI is the channel of the root state (AHP since 0.2.0; older documents call it
// agenthost:/root).
const RootURI = "ahp-root://"

// TerminalScheme starts the URI of every terminal that tether makes. The official state
// mirrors route terminal state by this prefix only. A terminal of another host may have
// any scheme, so the prefix does not tell whether a URI is a terminal's.
const TerminalScheme = "ahp-terminal:/"

// NewTerminalURI returns the URI of a terminal whose id, without a slash, is uuid.
func NewTerminalURI(uuid string) string { return TerminalScheme + uuid }

// Requests of a client to a host (AHP method catalogue).
const (
	MethodInitialize      = "initialize"
	MethodReconnect       = "reconnect"
	MethodPing            = "ping" // answered even before initialize
	MethodSubscribe       = "subscribe"
	MethodListSessions    = "listSessions"
	MethodCreateSession   = "createSession"
	MethodDisposeSession  = "disposeSession"
	MethodCreateTerminal  = "createTerminal"
	MethodDisposeTerminal = "disposeTerminal"
)

// Notifications.
const (
	MethodUnsubscribe           = "unsubscribe"    // client to host
	MethodDispatchAction        = "dispatchAction" // client to host
	MethodAction                = "action"         // host to client; params are an Envelope
	MethodSessionAdded          = "root/sessionAdded"
	MethodSessionRemoved        = "root/sessionRemoved"
	MethodSessionSummaryChanged = "root/sessionSummaryChanged"
)

// MethodAck is the extension's notification of a host to the owner of a client-executed
// terminal; params are AckParams.
const MethodAck = "x-tether/ack"

// MethodObservers is the host's notification of the number of watchers; params are
// ObserversParams.
const MethodObservers = "x-tether/observers"

// Keys of the extension inside _meta objects.
const (
	MarkerKey = "tether/clientTerminals" // in InitializeResult and InitializeParams
	OffsetKey = "tether/offset"          // in a terminal/output action: position of its first byte, UTF-8 bytes

	// AgentKey is in a tool call: the name of the agent that made it, for people to read.
	// It grants no rights.
	AgentKey = "tether/agent"
	// FormerKey is in createTerminal, and then in the terminal's state and entry: the URI
	// under which the host knew the same terminal before it ended there.
	FormerKey = "tether/formerTerminal"
	// CommandsKey is in createTerminal: how many commands of the shell have ended. The
	// end of a command takes one position in the offsets that a host's agents count; with
	// the number, offsets are the same at every host.
	CommandsKey = "tether/commands"
	// CheckoutKey is in createTerminal: the git work tree of the terminal's directory, as
	// {"repository","worktree","branch","commit"}. A later one comes in MethodState.
	CheckoutKey = "tether/checkout"
	// AdoptedKey is in createTerminal, and then in the terminal's state and entry, if the
	// terminal only reads a pane of another program: that program's name, such as tmux.
	// PictureKey is true there if not every byte of the pane is read.
	AdoptedKey = "tether/adopted"
	PictureKey = "tether/repeatedPicture"
	// HoldsKey is in createTerminal: true if the child waits for slow readers, so that
	// the host may pace it by the slowest observer.
	HoldsKey = "tether/holds"
	// CreatedKey is in createTerminal, and ExitedKey in a terminal/exited action: when
	// that happened by the owner's clock, in Unix milliseconds. The host may hear of it
	// much later.
	CreatedKey = "tether/createdAt"
	ExitedKey  = "tether/exitedAt"
	// MissingKey is in a terminal's state: how many bytes of its stream never reached the
	// host; and in the terminal/data action that shows a gap: how many are missing there.
	MissingKey = "tether/missingBytes"
	// ScreenKey is in the state of a terminal in a snapshot, and in terminal/data and
	// terminal/output actions: a [Screen].
	ScreenKey = "tether/screen"
	// SkippedKey is in the terminal/data action after a loss: the number of bytes that
	// the subscriber missed.
	SkippedKey = "tether/skippedBytes"
)

// Kinds of root actions.
const (
	ActionRootAgentsChanged         = "root/agentsChanged"
	ActionRootActiveSessionsChanged = "root/activeSessionsChanged"
	ActionRootTerminalsChanged      = "root/terminalsChanged"
	ActionRootConfigChanged         = "root/configChanged"
)

// Kinds of terminal actions. The proposal (client-executed terminals) adds
// TerminalOutput; the eleven others have been in AHP since 0.1.0.
const (
	ActionTerminalData                      = "terminal/data"
	ActionTerminalOutput                    = "terminal/output"
	ActionTerminalInput                     = "terminal/input"
	ActionTerminalResized                   = "terminal/resized"
	ActionTerminalClaimed                   = "terminal/claimed"
	ActionTerminalTitleChanged              = "terminal/titleChanged"
	ActionTerminalCwdChanged                = "terminal/cwdChanged"
	ActionTerminalExited                    = "terminal/exited"
	ActionTerminalCleared                   = "terminal/cleared"
	ActionTerminalCommandDetectionAvailable = "terminal/commandDetectionAvailable"
	ActionTerminalCommandExecuted           = "terminal/commandExecuted"
	ActionTerminalCommandFinished           = "terminal/commandFinished"
)

// Kinds of session actions, as far as client tools and session claims need them; others
// are kept as UnknownAction.
const (
	ActionSessionTitleChanged        = "session/titleChanged"
	ActionSessionChatUpdated         = "session/chatUpdated"
	ActionSessionActiveClientSet     = "session/activeClientSet"
	ActionSessionActiveClientRemoved = "session/activeClientRemoved"
	ActionSessionInputNeededSet      = "session/inputNeededSet"
	ActionSessionInputNeededRemoved  = "session/inputNeededRemoved"
)

// Kinds of chat actions: turns and their tool calls. Queued messages, drafts,
// elicitations and usage are out of scope.
const (
	ActionChatTurnStarted            = "chat/turnStarted"
	ActionChatTurnComplete           = "chat/turnComplete"
	ActionChatTurnCancelled          = "chat/turnCancelled"
	ActionChatToolCallStart          = "chat/toolCallStart"
	ActionChatToolCallReady          = "chat/toolCallReady"
	ActionChatToolCallConfirmed      = "chat/toolCallConfirmed"
	ActionChatToolCallContentChanged = "chat/toolCallContentChanged"
	ActionChatToolCallComplete       = "chat/toolCallComplete"
)

// ExecutionTarget says where a terminal's pty runs. The zero value means TargetServer.
type ExecutionTarget string

// The targets of the proposal.
const (
	TargetServer ExecutionTarget = "server"
	TargetClient ExecutionTarget = "client"
)

// Error codes of AHP (types/common/errors.ts). They are untyped so that they serve as a
// jsonrpc.Code without conversion; the standard JSON-RPC codes are in package jsonrpc.
const (
	CodeSessionNotFound            = -32001 // VS Code answers a subscribe to any unknown channel with it
	CodeProviderNotFound           = -32002
	CodeSessionAlreadyExists       = -32003
	CodeUnsupportedProtocolVersion = -32005 // data: VersionErrorData
	CodeNotFound                   = -32008 // unknown resource; for reconnect, unknown clientId
	CodePermissionDenied           = -32009
	CodeAlreadyExists              = -32010
	CodeConflict                   = -32011
)

// IsGone reports whether code says that a channel does not exist. Hosts use either of two
// codes for it.
func IsGone(code int64) bool { return code == CodeNotFound || code == CodeSessionNotFound }
