package ahp

import "slices"

// ReduceSession returns a session's state after an accepted action. It changes nothing
// reachable from s.
func ReduceSession(s SessionState, a Action) SessionState {
	switch a := a.(type) {
	case SessionReady:
		s.Lifecycle = LifecycleReady
	case SessionCreationFailed:
		s.Lifecycle, s.CreationError = LifecycleCreationFailed, a.Error
	case SessionTitleChanged:
		s.Title = a.Title
	case SessionActivityChanged:
		s.Activity = a.Activity
	case SessionDefaultChatChanged:
		s.DefaultChat = a.DefaultChat
	case SessionServerToolsChanged:
		s.ServerTools = list(a.Tools)
	case SessionChatAdded:
		s.Chats = upsert(s.Chats, a.Summary, func(c ChatSummary) bool { return c.Resource == a.Summary.Resource })
	case SessionChatUpdated:
		s.Chats = updateChat(s.Chats, a)
	case SessionChatRemoved:
		s.Chats = without(s.Chats, func(c ChatSummary) bool { return c.Resource == a.Chat })
		if s.DefaultChat == a.Chat {
			s.DefaultChat = ""
		}
	case SessionActiveClientSet:
		s.ActiveClients = upsert(s.ActiveClients, a.ActiveClient,
			func(c ActiveClient) bool { return c.ClientID == a.ActiveClient.ClientID })
	case SessionActiveClientRemoved:
		s.ActiveClients = without(s.ActiveClients, func(c ActiveClient) bool { return c.ClientID == a.ClientID })
	case SessionInputNeededSet:
		s = needInput(s, upsert(s.InputNeeded, a.Request, func(r InputRequest) bool { return r.ID == a.Request.ID }))
	case SessionInputNeededRemoved:
		if left := without(s.InputNeeded, func(r InputRequest) bool { return r.ID == a.ID }); len(left) < len(s.InputNeeded) {
			s = needInput(s, left)
		}
	}
	return s
}

// needInput updates the status: a request that a client executes is work in progress, any
// other waits for a person.
func needInput(s SessionState, needed []InputRequest) SessionState {
	if s.InputNeeded = needed; len(needed) == 0 {
		s.InputNeeded = nil
	}
	if slices.ContainsFunc(needed, func(r InputRequest) bool { return r.Kind != InputToolClientExecution }) {
		s.Status = s.Status&^sessionActivity | SessionInputNeeded
	} else {
		s.Status &^= SessionInputNeeded &^ SessionInProgress
	}
	return s
}

func updateChat(chats []ChatSummary, a SessionChatUpdated) []ChatSummary {
	i := slices.IndexFunc(chats, func(c ChatSummary) bool { return c.Resource == a.Chat })
	if i < 0 {
		return chats
	}
	next, c := chats[i], a.Changes
	replace(&next.Title, c.Title)
	replace(&next.Status, c.Status)
	replace(&next.ModifiedAt, c.ModifiedAt)
	replace(&next.ParentChat, c.ParentChat)
	replace(&next.Interactivity, c.Interactivity)
	if c.Activity != nil {
		next.Activity = c.Activity
	}
	if c.Origin != nil {
		next.Origin = c.Origin
	}
	if c.WorkingDirectories != nil {
		next.WorkingDirectories = c.WorkingDirectories
	}
	chats = slices.Clone(chats)
	chats[i] = next
	return chats
}

// replace sets a field if the change has it.
func replace[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// upsert returns a copy of items in which x replaces the first item that is the same, or
// is appended.
func upsert[T any](items []T, x T, same func(T) bool) []T {
	if i := slices.IndexFunc(items, same); i >= 0 {
		items = slices.Clone(items)
		items[i] = x
		return items
	}
	return append(slices.Clip(items), x)
}

// without returns items without the first one that is the same. It does not change items.
func without[T any](items []T, same func(T) bool) []T {
	i := slices.IndexFunc(items, same)
	if i < 0 {
		return items
	}
	return slices.Delete(slices.Clone(items), i, i+1)
}
