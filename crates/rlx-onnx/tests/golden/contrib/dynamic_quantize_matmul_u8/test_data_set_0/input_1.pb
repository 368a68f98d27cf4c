Bx1JøviAQÎVjlHX]YAÎœÌÊ
