package wsconn

import "net"

// Below is the connection below the link.
func (c *Conn) Below() net.Conn { return c.link.Conn }
